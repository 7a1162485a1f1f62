-- | The queues of unagi-chan beside those of base and stm, in the same suite as @Queues.hs@ of the SDK's examples.
module Main (main) where

import Control.Concurrent (yield)
import Control.Concurrent.Chan
import qualified Control.Concurrent.Chan.Unagi as Unagi
import qualified Control.Concurrent.Chan.Unagi.Bounded as Bounded
import qualified Control.Concurrent.Chan.Unagi.NoBlocking as NoBlocking
import qualified Control.Concurrent.Chan.Unagi.Unboxed as Unboxed
import Control.Concurrent.STM
import Scruple.Bench
import Scruple.Queue

main :: IO ()
main = scruple
  [ param "producers" (fromIntegral p) . param "consumers" (fromIntegral c) $ queue name (traffic p c) new
  | (name, traffic, new) <-
      [ ("Unagi", between, uncurry (ends Unagi.writeChan Unagi.readChan) <$> Unagi.newChan)
      , ("Unagi.Unboxed", between, uncurry (ends Unboxed.writeChan Unboxed.readChan) <$> Unboxed.newChan)
      , ("Unagi.NoBlocking", between
        , uncurry (ends NoBlocking.writeChan (NoBlocking.readChan yield)) <$> NoBlocking.newChan)
      , ("Unagi.Bounded 128", \p c -> (between p c) { capacity = Just 128 }
        , uncurry (ends Bounded.writeChan Bounded.readChan) <$> Bounded.newChan 128)
      , ("Chan", between, (\q -> ends writeChan readChan q q) <$> newChan)
      , ("TQueue", between
        , (\q -> Ends (atomically . writeTQueue q) (atomically (readTQueue q))) <$> newTQueueIO)
      , ("TBQueue 128", \p c -> (between p c) { capacity = Just 128 }
        , (\q -> Ends (atomically . writeTBQueue q) (atomically (readTBQueue q))) <$> newTBQueueIO 128)
      ]
  , (p, c) <- [(1, 1), (1, 2), (2, 1), (2, 2)] ]

ends :: (i -> Int -> IO ()) -> (o -> IO Int) -> i -> o -> Ends
ends write readNext i o = Ends (write i) (readNext o)
