-- | Queues between producers and consumers: throughput for each element, the ledger, and fairness. Link with
-- @-threaded@.
module Main (main) where

import Control.Concurrent.Chan
import Control.Concurrent.MVar
import Control.Concurrent.STM
import Numeric.Natural (Natural)
import Scruple.Bench
import Scruple.Queue

main :: IO ()
main = scruple
  [ param "producers" (fromIntegral p) . param "consumers" (fromIntegral c) $ queue name (traffic p c) new
  | (name, traffic, new) <-
      [ ("Chan", between, chan)
      , ("TQueue", between, tqueue)
      , ("TBQueue 100", \p c -> (between p c) { capacity = Just 100 }, tbqueue 100)
      , ("MVar", \p c -> (between p c) { capacity = Just 1 }, mvar)
      ]
  , (p, c) <- [(1, 1), (1, 2), (2, 1), (2, 2)] ]

chan, tqueue, mvar :: IO Ends
chan = newChan >>= \q -> return (Ends (writeChan q) (readChan q))
tqueue = newTQueueIO >>= \q -> return (Ends (atomically . writeTQueue q) (atomically (readTQueue q)))
mvar = newEmptyMVar >>= \q -> return (Ends (putMVar q) (takeMVar q))

tbqueue :: Natural -> IO Ends
tbqueue n = newTBQueueIO n >>= \q -> return (Ends (atomically . writeTBQueue q) (atomically (readTBQueue q)))
