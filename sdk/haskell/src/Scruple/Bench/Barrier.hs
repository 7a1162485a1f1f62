{-# LANGUAGE BangPatterns #-}
{-# LANGUAGE CPP #-}

-- | A barrier that opens when all threads have a core at the same time, so that none starts late.
module Scruple.Bench.Barrier (Barrier, newBarrier, meet) where

import Control.Concurrent (yield)
import Control.Monad
import Data.Bits (shiftL, shiftR)
import Data.IORef
import Data.Word (Word64)
import Foreign.C.Types (CInt (..))
import GHC.Clock (getMonotonicTimeNSec)
#ifdef linux_HOST_OS
import Data.Bits (clearBit, finiteBitSize)
import Foreign.C.Types (CSize (..), CULong (..))
import Foreign.Marshal.Array (allocaArray, peekArray, pokeArray)
import Foreign.Ptr (Ptr)
#endif

-- | How many threads have come; the call, a number and how many threads have answered it, or 'open'; and the cores on
-- which threads are.
data Barrier = Barrier Int (IORef Int) (IORef Int) (IORef [Int])

newBarrier :: Int -> IO Barrier
newBarrier count = Barrier count <$> newIORef 0 <*> newIORef 0 <*> newIORef []

open :: Int
open = -1

-- | Waits until all threads have come and have a core; the last one runs an action right before they start. Yielding lets
-- the others run if there are fewer cores.
meet :: Barrier -> IO () -> IO ()
meet (Barrier count gate calls cores) act = do
  come <- atomicModifyIORef' gate (\k -> (k + 1, k + 1))
  if come == count then writeIORef gate maxBound else gather
  rest <- newRest cores
  -- The last thread calls, the others answer.
  if come == count
    then do
      began <- getMonotonicTimeNSec
      let call number = do
            prompt <- answered number
            late <- (>= began + 5000000) <$> getMonotonicTimeNSec
            unless (prompt || late) (rest >> call (number + 1))
      call (1 :: Int)
      act
      writeIORef calls open
    else answer rest 0
  where
    gather = readIORef gate >>= \k -> when (k <= count) (yield >> gather)
    answered number = do
      let bare = number `shiftL` 16
          see asked = do
            now <- readIORef calls
            -- The clock is read after the answers: this thread may have lost its core in between.
            late <- (>= asked + 2000) <$> getMonotonicTimeNSec
            if now == bare + count - 1 || late then return (not late) else see asked
      atomicWriteIORef calls bare
      getMonotonicTimeNSec >>= see
    answer rest !answeredLast = do
      now <- readIORef calls
      case now `shiftR` 16 of
        _ | now == open -> return ()
        number
          | number == answeredLast -> rest >> answer rest answeredLast
          | otherwise -> do
              mine <- atomicModifyIORef' calls (\c -> if c == now then (c + 1, True) else (c, False))
              answer rest (if mine then number else answeredLast)

-- | An action for a thread that spins. Every 0.1 ms the thread naps, so that other programs let it run when it is awake.
newRest :: IORef [Int] -> IO (IO ())
newRest cores = do
  core <- own cores (-1) >>= newIORef
  since <- getMonotonicTimeNSec >>= newIORef
  return $ do
    now <- getMonotonicTimeNSec
    before <- readIORef since
    when (now - before > (100000 :: Word64)) $ do
      _ <- c_usleep 50
      readIORef core >>= own cores >>= writeIORef core
      getMonotonicTimeNSec >>= writeIORef since

foreign import ccall unsafe "usleep" c_usleep :: CInt -> IO CInt

-- | Makes the thread of the system leave its core if another one of the barrier is there: the kernel chooses one of the
-- others. Returns the core that is now this thread's, or -1; the argument is the result of the previous call.
own :: IORef [Int] -> Int -> IO Int
#ifdef linux_HOST_OS
own cores mine = do
  core <- fromIntegral <$> c_core
  if core == mine || core < 0 then return mine else do
    free <- atomicModifyIORef' cores $ \taken ->
      let others = filter (/= mine) taken in if core `elem` others then (others, False) else (core : others, True)
    if free then return core else do
      taken <- readIORef cores
      allocaArray count $ \p -> do
        known <- c_allowed 0 (bytes) p
        when (known >= 0) $ do
          allowed <- peekArray count p
          let other = foldr without allowed taken
          when (any (/= 0) other) $ do
            pokeArray p other
            moved <- c_allow 0 (bytes) p
            pokeArray p allowed
            when (moved == 0) (void (c_allow 0 (bytes) p))
      return (-1)
  where
    bytes = 128
    count = 1024 `div` width
    width = finiteBitSize (0 :: CULong)
    without core = zipWith (clear core) [0 ..]
    clear core at word = if at == core `div` width then clearBit word (core `mod` width) else word

foreign import ccall unsafe "sched_getcpu" c_core :: IO CInt
foreign import ccall unsafe "sched_getaffinity" c_allowed :: CInt -> CSize -> Ptr CULong -> IO CInt
foreign import ccall unsafe "sched_setaffinity" c_allow :: CInt -> CSize -> Ptr CULong -> IO CInt
#else
own _ _ = return (-1)
#endif
