-- | A queue whose consumers turn in circles after a thousand messages: what a livelock looks like from outside.
module Main (main) where

import Control.Concurrent (yield)
import Control.Concurrent.Chan
import Control.Monad (forever, when)
import Data.IORef
import Scruple.Bench (scruple)
import Scruple.Queue

main :: IO ()
main = scruple [queue "stand-in of a livelock" (between 1 1) new]

new :: IO Ends
new = do
  q <- newChan
  taken <- newIORef (0 :: Int)
  return (Ends (writeChan q) (next q taken))

next :: Chan Int -> IORef Int -> IO Int
next q taken = do
  n <- readIORef taken
  when (n >= 1000) (forever yield)
  writeIORef taken (n + 1)
  readChan q
