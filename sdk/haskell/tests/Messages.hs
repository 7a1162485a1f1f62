-- | Sends messages through a Chan between two threads, without a harness.
module Main (main) where

import Control.Concurrent
import System.Environment (getArgs)

main :: IO ()
main = do
  [count] <- map read <$> getArgs
  done <- newEmptyMVar
  chan <- newChan
  let send :: Int -> IO ()
      send i = if i < count then writeChan chan i >> send (i + 1) else return ()
      receive :: Int -> IO ()
      receive i = if i < count then readChan chan >>= \e -> e `seq` receive (i + 1) else putMVar done ()
  _ <- forkIO (send 0)
  _ <- forkIO (receive 0)
  takeMVar done
