-- | Three ways to run actions at set times, written for this study. An iteration adds n events, due in the next
-- milliseconds in a scattered order, and waits until all have fired. The check is the ledger: each fired once.
module Main (main) where

import Control.Concurrent
import Control.Concurrent.STM (atomically, newTVarIO, readTVar, readTVarIO, writeTVar)
import Control.Monad
import Data.IORef
import qualified Data.Map.Strict as Map
import GHC.Clock (getMonotonicTimeNSec)
import Scruple.Bench
import System.Environment (lookupEnv)

-- | The smoke test sets the variable SMOKE, and has a thousand events only.
main :: IO ()
main = lookupEnv "SMOKE" >>= \smoke -> scruple
  [ param "n" (fromIntegral n) $ items (fromIntegral n) $ bench name (check (ledger n) (nfIO (life new n)))
  | (name, new, sizes) <-
      [ ("map", alarm insertMap, [1000, 10000, 100000])
      , ("list", alarm insertList, [1000, 10000])
      , ("threads", thread, [1000, 10000, 100000]) ]
  , n <- maybe sizes (const (take 1 sizes)) smoke ]

type Time = Int

-- | Adds an action at a time; and ends the scheduler.
data Scheduler = Scheduler { add :: Time -> IO () -> IO (), end :: IO () }

now :: IO Time
now = fromIntegral . (`div` 1000) <$> getMonotonicTimeNSec

life :: IO Scheduler -> Int -> IO (Int, Int)
life new n = do
  scheduler <- new
  fired <- newIORef (0, 0)
  done <- newEmptyMVar
  begin <- now
  forM_ [0 .. n - 1] $ \i -> add scheduler (begin + (i * 7919) `mod` n) $ do
    count <- atomicModifyIORef' fired (\(c, s) -> let f = (c + 1, s + i * i) in f `seq` (f, c + 1))
    when (count == n) (putMVar done ())
  takeMVar done
  end scheduler
  readIORef fired

ledger :: Int -> (Int, Int) -> Maybe String
ledger n (count, squares)
  | count == n && squares == sum [i * i | i <- [0 .. n - 1]] = Nothing
  | otherwise = Just (show count ++ " of " ++ show n ++ " fired, or not each of them once")

-- | A thread for each event, which sleeps until it is due.
thread :: IO Scheduler
thread = return (Scheduler (\at act -> void (forkIO (now >>= \t -> when (at > t) (threadDelay (at - t)) >> act))) (return ()))

-- | Events in order of time, and one thread that sleeps until the first is due; an earlier one that is added wakes it.
alarm :: (Time -> IO () -> Queue -> Queue) -> IO Scheduler
alarm insert = do
  queue <- newTVarIO (Queue Map.empty [])
  woken <- newEmptyMVar
  let loop = do
        t <- now
        acts <- atomically $ do
          (acts, rest) <- takeDue t <$> readTVar queue
          writeTVar queue $! rest
          return acts
        sequence_ acts
        next <- first <$> readTVarIO queue
        case next of
          Nothing -> takeMVar woken
          Just at -> do
            later <- now
            when (at > later) $ do
              timer <- forkIO (threadDelay (at - later) >> void (tryPutMVar woken ()))
              takeMVar woken
              killThread timer
        loop
  worker <- forkIO loop
  let add' at act = do
        earlier <- atomically $ do
          before <- readTVar queue
          writeTVar queue $! insert at act before
          return (maybe True (at <) (first before))
        when earlier (void (tryPutMVar woken ()))
  return (Scheduler add' (killThread worker))

-- | Either a map or a list is in use.
data Queue = Queue !(Map.Map Time [IO ()]) [(Time, IO ())]

insertMap, insertList :: Time -> IO () -> Queue -> Queue
insertMap at act (Queue m l) = Queue (Map.insertWith (++) at [act] m) l
insertList at act (Queue m l) = let placed = place l in length placed `seq` Queue m placed
  where
    place (e : rest) | fst e <= at = e : place rest
    place rest = (at, act) : rest

first :: Queue -> Maybe Time
first (Queue m l) = case (Map.lookupMin m, l) of
  (Just (at, _), _) -> Just at
  (_, (at, _) : _) -> Just at
  _ -> Nothing

takeDue :: Time -> Queue -> ([IO ()], Queue)
takeDue t (Queue m l) = (concat (Map.elems early) ++ map snd due, Queue late rest)
  where
    (early, late) = Map.spanAntitone (<= t) m
    (due, rest) = span ((<= t) . fst) l
