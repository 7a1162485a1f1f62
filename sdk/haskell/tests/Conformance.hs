-- | The example cases of sdk/conformance: the test of this SDK.
module Main (main) where

import Control.Concurrent
import Control.Exception (throwIO)
import Control.Monad
import Data.Bits (xor)
import Data.IORef
import Data.Word (Word32)
import Foreign.ForeignPtr (ForeignPtr, mallocForeignPtrBytes, touchForeignPtr)
import System.Environment (getArgs)
import System.IO (hFlush, hSetEncoding, stdout, utf8)
import System.IO.Unsafe (unsafePerformIO)
import Text.Printf (printf)

import Scruple.Bench
import Scruple.Queue

main :: IO ()
main = do
  args <- getArgs
  hSetEncoding stdout utf8
  scruple (if args == ["many"] then many else examples)

many :: [Suite]
many = [group "many" (map one [0 .. 9999 :: Int])]
  where one i = param "index" (fromIntegral i) (bench (printf "%05d" i) (nf id (7 :: Word32)))

examples :: [Suite]
examples =
  [ bench "identity" (nf id (7 :: Word32))
  , bench "linear" (nf (steps 1000) 7)
  , param "bytes" 100000 (bench "alloc/known" (whnfIO (block 100000)))
  , bench "throws" (nfIO deliberate)
  , bench "skips" (nfIO (skip "no such device") :: Body ())
  , bench "hangs/idle" (nfIO (forever hour) :: Body ())
  , bench "hangs/busy" (nfIO (forever (return ())) :: Body ())
  , threads [1, 2] (bench "threads/two" (nf id (7 :: Word32)))
  , maxIterations 100 (bench "input/per-iteration" (nfInput (newIORef False) use))
  , env (modifyIORef setups (+ 1)) return $ \_ ->
      bench "setup/counted" (digest show (check (const Nothing) (nfIO (readIORef setups))))
  , env deliberate return $ \_ -> bench "setup/throws" nothing
  , bench "check/passes" (digest (const "cafe") (check (const Nothing) nothing))
  , bench "check/fails" (check (const (Just "a deliberate refusal")) nothing)
  , bench "prints" (nfIO (putStrLn "printed by a case" >> hFlush stdout))
  , group "" [param "n" (fromIntegral n) (bench "growth" (nf (steps n) 7)) | n <- [0, 1, 2, 3, 10, 100]]
  , atMost "time.wall" 1000000 $ budget "alloc.bytes" [("max", JStr "+5%"), ("against", JStr "baseline")] $
      bench "budgets" nothing
  , inGroup "another group" . tagged ["slow", "two words"] . bytes 4096 . fresh . timeLimit 5000000000 $
      bench "fields" nothing
  , group "names" [bench name nothing | name <- ["\"quoted\" and \\backslash", "tab\ttab", "grün λ 東京 🐎", "a//b/c"]]
  , group "queue"
      [ queue "fifo" two { capacity = Just 64 } (bounded 64)
      , queue "lossy" two { capacity = Just 64 } (newIORef 0 >>= \k -> bounded 64 >>= dropping k)
      , queue "stuck idle" two { stall = 300000000 } (bounded 64 >>= \q -> return q { get = hour >> get q })
      , queue "stuck busy" two { stall = 300000000 } (bounded 64 >>= \q -> return q { get = forever yield })
      ]
  ]
  where two = between 2 2

hour :: IO ()
hour = threadDelay 3600000000

nothing :: Body ()
nothing = nfIO (return ())

deliberate :: IO ()
deliberate = throwIO (userError "a deliberate failure")

steps :: Int -> Word32 -> Word32
steps n = go 0
  where
    go i h
      | i >= n = h
      | otherwise = go (i + 1) ((h `xor` fromIntegral i) * 16777619)
{-# NOINLINE steps #-}

block :: Int -> IO ()
block n = (mallocForeignPtrBytes n :: IO (ForeignPtr ())) >>= touchForeignPtr

use :: IORef Bool -> IO ()
use mark = do
  used <- readIORef mark
  when used (throwIO (userError "this input was used before"))
  writeIORef mark True

setups :: IORef Int
setups = unsafePerformIO (newIORef 0)
{-# NOINLINE setups #-}

-- A bounded queue that only needs base.
bounded :: Int -> IO Ends
bounded n = do
  items' <- newChan
  room <- newQSem n
  return (Ends (\e -> waitQSem room >> writeChan items' e) (readChan items' <* signalQSem room))

-- Drops every 100th element, except end marks.
dropping :: IORef Int -> Ends -> IO Ends
dropping k q = return q { put = \e -> do
  i <- if e < 0 then return 1 else atomicModifyIORef' k (\i -> (i + 1, i + 1))
  unless (i `mod` 100 == 0) (put q e) }
