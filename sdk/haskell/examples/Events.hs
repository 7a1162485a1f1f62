-- | Schedulers of events in virtual time: n events are added, every fourth is cancelled, and the clock is
-- advanced until all are due. One iteration does all this for n events. The check is the ledger: each event
-- that was not cancelled fired once, at its time.
module Main (main) where

import Control.Monad
import Data.IORef
import qualified Data.Map.Strict as Map
import Scruple.Bench

-- | The operations of a scheduler: add an event at a time, cancel it, and return the events due at a time, in order.
data Scheduler = Scheduler
  { add :: Int -> Int -> IO ()
  , cancel :: Int -> Int -> IO ()
  , due :: Int -> IO [Int] }

main :: IO ()
main = scruple
  [ variant "deadlines" order $ param "n" (fromIntegral n) $ items (fromIntegral n) $
      bench name (digest show (check (ledger n) (nfIO (new >>= life n at))))
  | (name, new, sizes) <- [("map", mapScheduler, [1000, 10000, 100000]), ("sorted list", listScheduler, [100, 1000])]
  , (order, at) <- orders
  , n <- sizes ]

orders :: [(String, Int -> Int -> Int)]
orders =
  [ ("scattered", \n i -> (i * 7919) `mod` n)
  , ("equal", \_ _ -> 1)
  , ("descending", \n i -> n - i) -- Each is earlier than the alarm that was set.
  ]

-- | The number of events that fired, the sum of the squares of their numbers, and the number of those that fired at a
-- wrong time or after they were cancelled.
life :: Int -> (Int -> Int -> Int) -> Scheduler -> IO (Int, Int, Int)
life n at s = do
  fired <- newIORef 0
  squares <- newIORef 0
  wrong <- newIORef 0
  forM_ [0 .. n - 1] (\i -> add s (at n i) i)
  forM_ [0, 4 .. n - 1] (\i -> cancel s (at n i) i)
  forM_ [0, step .. n + step] $ \now -> do
    events <- due s now
    forM_ events $ \i -> do
      modifyIORef' fired (+ 1)
      modifyIORef' squares (+ i * i)
      when (at n i > now || now > 0 && at n i <= now - step || i `mod` 4 == 0) (modifyIORef' wrong (+ 1))
  (,,) <$> readIORef fired <*> readIORef squares <*> readIORef wrong
  where step = max 1 (n `div` 100)

ledger :: Int -> (Int, Int, Int) -> Maybe String
ledger n (fired, squares, wrong)
  | fired == length kept && squares == sum (map (^ (2 :: Int)) kept) && wrong == 0 = Nothing
  | otherwise = Just (show fired ++ " fired of " ++ show (length kept) ++ ", " ++ show wrong ++ " wrongly")
  where kept = [i | i <- [0 .. n - 1], i `mod` 4 /= 0]

mapScheduler :: IO Scheduler
mapScheduler = do
  events <- newIORef Map.empty
  return Scheduler
    { add = \t i -> modifyIORef' events (Map.insert (t, i) ())
    , cancel = \t i -> modifyIORef' events (Map.delete (t, i))
    , due = \now -> do
        (early, late) <- Map.spanAntitone (\(t, _) -> t <= now) <$> readIORef events
        writeIORef events late
        return (map snd (Map.keys early)) }

-- A scheduler with a sorted list, in which adding walks past every earlier event.
listScheduler :: IO Scheduler
listScheduler = do
  events <- newIORef []
  return Scheduler
    { add = \t i -> modifyIORef' events (forced . place (t, i))
    , cancel = \t i -> modifyIORef' events (forced . filter (/= (t, i)))
    , due = \now -> do
        (early, late) <- span ((<= now) . fst) <$> readIORef events
        writeIORef events late
        return (map snd early) }
  where
    forced es = length es `seq` es
    place new es = case es of
      e : rest | e < new -> e : place new rest
      _ -> new : es
