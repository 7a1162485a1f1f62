{-# LANGUAGE BangPatterns #-}
{-# LANGUAGE CPP #-}
{-# LANGUAGE MagicHash #-}
{-# LANGUAGE UnboxedTuples #-}
{-# OPTIONS_GHC -O2 -fno-full-laziness -fno-prof-auto #-}

-- | Clocks, counters, and the timed part.
module Scruple.Bench.Measure
  ( Reading (..), measured, measuredAlone, witnessed, inNewThread
  , Gauges, gcs, gauges, gaugeEntries, missed
  , HeapState (..), heapState
  , Counter (..), counters, metric, counterJSON, clocksJSON
  , threadNs, processNs
  ) where

import Control.Concurrent
import Control.Exception (SomeException, bracket, evaluate, throwIO, try)
import Control.Monad (replicateM_)
import Data.Int (Int64)
import Data.Maybe (isJust)
import Data.Word (Word32, Word64, Word8)
import Foreign.C.String (CString, withCString)
import Foreign.C.Types (CInt (..), CLong)
import Foreign.Marshal.Alloc (allocaBytesAligned)
import Foreign.Marshal.Array (advancePtr, allocaArray, peekArray)
import Foreign.Ptr (nullFunPtr, nullPtr, plusPtr)
import Foreign.StablePtr (freeStablePtr, newStablePtr)
import Foreign.Storable (peekByteOff, peekElemOff)
import GHC.Clock (getMonotonicTimeNSec)
#if __GLASGOW_HASKELL__ >= 904
import GHC.Exts (FunPtr, Int (..), Int#, Ptr, getThreadAllocationCounter#, int64ToInt#, xorI#, (+#), (-#), (<=#))
#else
import GHC.Exts (FunPtr, Int (..), Int#, Ptr, getThreadAllocationCounter#, xorI#, (+#), (-#), (<=#))
#endif
import GHC.IO (IO (..))
import GHC.Stats (RTSStats (gc_elapsed_ns), getRTSStats, getRTSStatsEnabled)
import System.IO.Unsafe (unsafePerformIO)
import System.Info (os)
import System.Mem (performMajorGC)

import Scruple.Bench.Json (JSON (..))
import Scruple.Bench.SystemThread (numbered)

-- | One thread's timed part: start, end, CPU time, and allocated bytes. The CPU time is that of the system's
-- thread; it is absent if the runtime has moved our thread to another one in between.
data Reading = Reading { began, ended :: !Word64, cpuTime :: !(Maybe Int), allocated :: !Int }

-- | The timed part. The thread's allocation counter is exact to the byte and needs neither a flush nor an
-- option of the runtime; it counts downwards. Between its two readings only the loop allocates.
measured :: (Int -> IO ()) -> Int -> IO Reading
measured !loop !n = allocaArray 4 $ \cpu -> do
  let !clock = threadClock
      !act = loop n
  carrier <- c_pthread_self
  a0 <- allocationCounter
  _ <- c_clock_gettime clock cpu
  t0 <- getMonotonicTimeNSec
  act
  t1 <- getMonotonicTimeNSec
  _ <- c_clock_gettime clock (cpu `advancePtr` 2)
  a1 <- allocationCounter
  c0 <- timespec cpu
  c1 <- timespec (cpu `advancePtr` 2)
  same <- (== carrier) <$> c_pthread_self
  return (Reading t0 t1 (if same then Just (c1 - c0) else Nothing) (a0 - a1))
{-# NOINLINE measured #-}

foreign import ccall unsafe "clock_gettime" c_clock_gettime :: CInt -> Ptr CLong -> IO CInt
foreign import ccall unsafe "clock_getres" c_clock_getres :: CInt -> Ptr CLong -> IO CInt
foreign import ccall unsafe "pthread_self" c_pthread_self :: IO (Ptr ())
foreign import ccall unsafe "getRTSStats" c_getRTSStats :: Ptr Word8 -> IO ()
foreign import ccall unsafe "dlsym" c_dlsym :: Ptr () -> CString -> IO (FunPtr (Ptr Word64 -> IO ()))
foreign import ccall unsafe "dynamic" callSnapshot :: FunPtr (Ptr Word64 -> IO ()) -> Ptr Word64 -> IO ()

monotonicClock, threadClock, processClock :: CInt
(monotonicClock, threadClock, processClock) = case os of
  "darwin" -> (6, 16, 12)
  "freebsd" -> (4, 14, 15)
  _ -> (1, 3, 2)

timespec :: Ptr CLong -> IO Int
timespec p = do
  s <- peekElemOff p 0
  ns <- peekElemOff p 1
  return (fromIntegral s * 1000000000 + fromIntegral ns)

threadNs, processNs :: IO Int
threadNs = allocaArray 2 (\p -> c_clock_gettime threadClock p >> timespec p)
processNs = allocaArray 2 (\p -> c_clock_gettime processClock p >> timespec p)


-- | The timed part in a new thread, so that every batch begins with a small stack. The stack that a body needs
-- beyond that is allocated and counted, independent of earlier batches.
measuredAlone :: (Int -> IO ()) -> Int -> IO Reading
measuredAlone loop n = inNewThread (measured loop n)

-- | Like 'measuredAlone', with the number of the system's thread that ran the batch, and with the slower of two
-- witnesses, one right before the batch and one right after it.
witnessed :: (Int -> IO ()) -> Int -> IO (Reading, Maybe Int, Int)
witnessed loop n = inNewThread $ do
  before <- witness
  (r, number) <- numbered (measured loop n)
  after <- witness
  return (r, number, max before after)

-- | The time of a fixed piece of work in nanoseconds: some 2000 with a core for itself, up to twice as long if
-- the core's other thread is busy, since the work uses all units of the core.
witness :: IO Int
witness = do
  t0 <- getMonotonicTimeNSec
  _ <- evaluate (I# (work 2500# 1# 2# 3# 4#))
  t1 <- getMonotonicTimeNSec
  return (fromIntegral (t1 - t0))
{-# NOINLINE witness #-}

work :: Int# -> Int# -> Int# -> Int# -> Int# -> Int#
work n a b c d = case n <=# 0# of
  1# -> a +# b +# c +# d
  _ -> work (n -# 1#) (a +# n) (b `xorI#` n) (c -# n) (d +# 3#)

-- | Runs an action in a new thread and waits for it. The stable pointer keeps the runtime from regarding the waiting
-- thread as blocked for ever if the new thread is. Before the action, others run until they wait: the runtime's manager
-- of input has just delivered a request, and would else take the system's thread away from a batch of over 10 ms, in
-- order to wait on it for the next request.
inNewThread :: IO a -> IO a
inNewThread act = do
  box <- newEmptyMVar
  (here, _) <- myThreadId >>= threadCapability
  bracket (newStablePtr box) freeStablePtr $ \_ -> do
    _ <- forkOn here (try (replicateM_ 4 yield >> act) >>= putMVar box)
    takeMVar box >>= either (throwIO :: SomeException -> IO a) return

-- The function in base returns a boxed result, whose allocation would be counted.
allocationCounter :: IO Int
#if __GLASGOW_HASKELL__ >= 904
allocationCounter = IO (\s -> case getThreadAllocationCounter# s of (# s', n #) -> (# s', I# (int64ToInt# n) #))
#else
allocationCounter = IO (\s -> case getThreadAllocationCounter# s of (# s', n #) -> (# s', I# n #))
#endif
{-# INLINE allocationCounter #-}

-- | The counters of the whole process. The runtime always keeps the first ones; only times need @-T@. The offsets
-- are those of the public C structure since GHC 8.2.
data Gauges = Gauges { gcs, majors :: !Word32, gcTime :: !(Maybe Int64), heap :: !(Maybe [Word64]) }

gauges :: IO Gauges
gauges = do
  timed <- getRTSStatsEnabled
  ns <- if timed then Just . gc_elapsed_ns <$> getRTSStats else return Nothing
  (g, m) <- withStats (\p -> (,) <$> peekByteOff p 0 <*> peekByteOff p 4)
  Gauges g m ns <$> traverse readSnapshot snapshot
  where readSnapshot f = allocaArray 8 (\p -> callSnapshot f p >> peekArray 8 p)

withStats :: (Ptr Word8 -> IO a) -> IO a
withStats act = allocaBytesAligned 8192 16 (\p -> c_getRTSStats p >> act p)

-- | Live bytes (after a full collection), their maximum after any collection, and the maximum of mapped bytes.
data HeapState = HeapState { liveBytes, maxLiveBytes, maxMappedBytes :: !Word64 }

heapState :: IO HeapState
heapState = do
  before <- withStats (`peekByteOff` 56) :: IO Word64
  performMajorGC
  withStats (\p -> do
    after <- peekByteOff p 56
    HeapState (after - before) <$> peekByteOff p 16 <*> peekByteOff p 48)

-- | The preload library's function, if a counting pass has attached the library.
snapshot :: Maybe (FunPtr (Ptr Word64 -> IO ()))
snapshot = unsafePerformIO $ do
  let everywhere = if os == "darwin" then nullPtr `plusPtr` (-2) else nullPtr
  f <- withCString "scruple_heap_snapshot" (c_dlsym everywhere)
  return (if f == nullFunPtr then Nothing else Just f)
{-# NOINLINE snapshot #-}

gaugeEntries :: Gauges -> Gauges -> [(String, JSON)]
gaugeEntries a b =
  [("gc.count", JInt (fromIntegral (gcs b - gcs a))), ("gc.major", JInt (fromIntegral (majors b - majors a)))]
    ++ [("gc.time", JInt (fromIntegral (y - x))) | Just x <- [gcTime a], Just y <- [gcTime b]]
    ++ concat [mallocs x y | Just x <- [heap a], Just y <- [heap b]]
  where
    mallocs x y =
      [ (key, JInt (fromIntegral (y !! i - x !! i)))
      | (i, key) <- zip [0 ..] ["malloc.count", "malloc.bytes", "malloc.frees", "malloc.freed_bytes"] ]
        ++ [("malloc.peak", JInt (fromIntegral (y !! 5 - x !! 4))) | y !! 5 > max (x !! 5) (x !! 4)]

-- | The number of events that the preload library reports as missed.
missed :: Gauges -> Gauges -> Int
missed a b = sum [fromIntegral (y !! 7 - x !! 7) | Just x <- [heap a], Just y <- [heap b]]

-- | A counter or another reading that is announced.
data Counter = Counter
  { counterKey, counterUnit, counterQuality :: String
  , counterPer :: Maybe String }

counters :: IO [Counter]
counters = do
  timed <- getRTSStatsEnabled
  return $
    [ exact "alloc.bytes" "bytes", exact "gc.count" "count"
    , exact "gc.major" "count" ]
      ++ [(exact "gc.time" "ns") { counterQuality = "near" } | timed]
      ++ (if isJust snapshot
            then [exact "malloc.count" "count", exact "malloc.bytes" "bytes", exact "malloc.frees" "count"
                 , exact "malloc.freed_bytes" "bytes", metric "malloc.peak" "bytes" "exact"]
            else [])
  where exact key unit = Counter key unit "exact" Nothing

-- | A reading that is per batch, not to be divided by its iterations.
metric :: String -> String -> String -> Counter
metric key unit quality = Counter key unit quality (Just "batch")

counterJSON :: Counter -> JSON
counterJSON (Counter key unit quality per) = JObj $
  [("key", JStr key), ("unit", JStr unit), ("quality", JStr quality)]
    ++ [("per", JStr v) | Just v <- [per]]


clocksJSON :: IO JSON
clocksJSON = do
  wall <- resolution monotonicClock
  cpu <- resolution threadClock
  return (JObj [ ("time.wall", JObj [("resolution", JInt wall)])
               , ("time.cpu", JObj [("resolution", JInt cpu), ("scope", JStr "thread")]) ])
  where resolution clock = allocaArray 2 (\p -> c_clock_getres clock p >> timespec p)
