{-# LANGUAGE MagicHash, UnboxedTuples #-}
{-# OPTIONS_GHC -O2 -fno-full-laziness -fno-prof-auto #-}

-- | Concurrency cases: producers put elements into a queue and consumers take them out.
--
-- > queue "Chan" (between 2 2) (do c <- newChan; return (Ends (writeChan c) (readChan c)))
--
-- Every batch is followed by a ledger: the figures are valid only if each element was taken exactly once. Link
-- with @-threaded@, else all threads share one core.
module Scruple.Queue (Ends (..), Traffic (..), between, queue) where

import Control.Concurrent
import Control.Exception
import Control.Monad
import Data.IORef
import Data.Maybe (isJust)
import Foreign.Marshal.Alloc (free, mallocBytes)
import Foreign.Marshal.Utils (fillBytes)
import Foreign.Ptr (plusPtr)
import Foreign.Storable (peek, peekElemOff)
import GHC.Clock (getMonotonicTimeNSec)
import GHC.Conc (getNumProcessors)
import GHC.Exts (Int (I#), Int#, Ptr (..), RealWorld, State#, writeIntOffAddr#, (*#), (+#), (<#), (>=#))
import GHC.IO (IO (..))
import GHC.Stack (HasCallStack, callStack)

import Scruple.Bench (JSON (..), Suite, leaf)
import Scruple.Bench.Barrier
import Scruple.Bench.Body
import Scruple.Bench.Measure
import Scruple.Bench.Protocol (Case (..), TellStall, Work (..))
import Scruple.Queue.Ledger

-- | The two ends of a queue. Negative elements end the consumers; a queue that drops elements must keep those.
data Ends = Ends { put :: Int -> IO (), get :: IO Int }

data Traffic = Traffic
  { producers, consumers :: Int
  , capacity :: Maybe Int -- ^ For the report; the queue itself must enforce it.
  , stall :: Int -- ^ After this many nanoseconds without progress, Scruple judges why there is none.
  , observed :: Int -- ^ The number of stamped elements when fairness is observed.
  }

-- | Traffic between @p@ producers and @c@ consumers, with an unbounded queue, a stall limit of 1 s, and 20,000 stamped
-- elements.
between :: Int -> Int -> Traffic
between p c = Traffic p c Nothing 1000000000 20000

-- | A case with a new queue for every batch. One iteration is one element.
queue :: HasCallStack => String -> Traffic -> IO Ends -> Suite
queue name t new = leaf callStack name (Just shape) work $ \c -> c
  { caseChecked = True
  , caseThroughput = Just ("items", 1)
  , caseConcurrency = Just ([("producers", JInt (producers t)), ("consumers", JInt (consumers t))]
      ++ [("capacity", JInt n) | Just n <- [capacity t]])
  , caseReadings = readings }
  where
    shape = "queue " ++ show (producers t) ++ " -> " ++ show (consumers t)
    work = Special { specialBatch = batch t new, specialOnce = fairness t new }

readings :: [Counter]
readings =
  [ metric ("queue." ++ k) "count" "exact" | k <- ["put", "got", "lost", "duplicated", "invented", "order_broken"] ]
    ++ [ metric ("queue." ++ k) "ratio" q
       | (k, q) <- [("balance.producers", "exact"), ("balance.consumers", "exact"), ("parallelism", "near")] ]
    ++ [metric ("queue." ++ a ++ b) "count" "exact" | a <- ["late.", "age."], b <- ["mean", "p99", "max"]]
    ++ [metric "queue.late.share" "ratio" "exact"]
    ++ [metric ("queue.sojourn." ++ k) "ns" "near" | k <- ["p50", "p99", "max"]]

batch :: Traffic -> IO Ends -> TellStall -> Bool -> Int -> Maybe Int -> IO Batch
batch t new tellStall tare n count
  | maybe False (/= producers t + consumers t) count =
      throwIO (refusal "request" ("this case always has " ++ show (producers t + consumers t) ++ " threads"))
  | tare = do
      Run row _ _ lost' <- run t tellStall (return Nothing) nothing n
      return (Batch row lost')
  | otherwise = do
      Run row ledger _ lost' <- run t tellStall (Just <$> new) plain n
      let row' = row ++ ledgerRow ledger
      forM_ (faults ledger) (\text -> throwIO (Refusal "ledger" text False [("batch", JObj row')]))
      return (Batch row' lost')

fairness :: Traffic -> IO Ends -> TellStall -> IO [(String, JSON)]
fairness t new tellStall = do
  Run _ ledger stamps _ <- run t tellStall (Just <$> new) stamped (observed t)
  let wrong = faults ledger
  return ([("ok", JBool (not (isJust wrong))), ("checked", JBool True)]
    ++ maybe (fairnessRow stamps) (\w -> [("why", JStr w)]) wrong)

-- -----------------------------------------------------------------------------------------------------------
-- The threads' loops. A consumer records its elements in rows of memory prepared beforehand, until an end mark
-- comes or the memory is full. The watchdog reads the number of elements that each thread has moved. As the loops of
-- other cases, they consist of primitive operations, for programs that are built without optimisation.

data Loops = Loops
  { width :: Int -- Words in a row of a consumer's record.
  , putting :: (Int -> IO ()) -> Int -> Ptr Int -> Ptr Int -> Int -> IO ()
  , getting :: IO Int -> Int -> Ptr Int -> Ptr Int -> IO () }

plain, nothing, stamped :: Loops
plain = Loops 1 produce consume
nothing = Loops 1 (const (produceNothing look)) consume
stamped = Loops 3 produceStamped consumeStamped

-- Runs steps 0, 1, … below a number, and writes down how many are done, until a step returns 0.
steps :: Ptr Int -> Int -> (Int# -> State# RealWorld -> (# State# RealWorld, Int# #)) -> IO ()
steps (Ptr moved) (I# most) step = IO (go 0#)
  where
    go i s = case i <# most of
      0# -> (# s, () #)
      _ -> case step i s of
        (# s1, 0# #) -> (# s1, () #)
        (# s1, _ #) -> case writeIntOffAddr# moved 0# (i +# 1#) s1 of s2 -> go (i +# 1#) s2
{-# INLINE steps #-}

-- Puts an evaluated element: if it were a thunk, its evaluation would be a cost of the harness.
produce :: (Int -> IO ()) -> Int -> Ptr Int -> Ptr Int -> Int -> IO ()
produce give p _ moved m = case element p 0 of
  I# first -> steps moved m (\i s -> case give (I# (first +# i)) of IO act -> case act s of (# s1, _ #) -> (# s1, 1# #))
{-# NOINLINE produce #-}

-- The tare's producer. It passes elements unboxed: a queue holds boxes, so they are part of a message's cost.
produceNothing :: (Int# -> IO ()) -> Int -> Ptr Int -> Ptr Int -> Int -> IO ()
produceNothing give p _ moved m = case element p 0 of
  I# first -> steps moved m (\i s -> case give (first +# i) of IO act -> case act s of (# s1, _ #) -> (# s1, 1# #))
{-# NOINLINE produceNothing #-}

look :: Int# -> IO ()
look _ = IO (\s -> (# s, () #))
{-# NOINLINE look #-}

consume :: IO Int -> Int -> Ptr Int -> Ptr Int -> IO ()
consume (IO take') room (Ptr record) moved = steps moved room $ \i s -> case take' s of
  (# s1, I# e #) -> case e >=# 0# of
    0# -> (# s1, 0# #)
    _ -> case writeIntOffAddr# record i e s1 of s2 -> (# s2, 1# #)
{-# NOINLINE consume #-}

produceStamped :: (Int -> IO ()) -> Int -> Ptr Int -> Ptr Int -> Int -> IO ()
produceStamped give p (Ptr stamps) moved m = case (element p 0, now) of
  (I# first, IO clock) -> steps moved m $ \i s -> case clock s of
    (# s1, I# at #) -> case writeIntOffAddr# stamps i at s1 of
      s2 -> case give (I# (first +# i)) of IO act -> case act s2 of (# s3, _ #) -> (# s3, 1# #)
{-# NOINLINE produceStamped #-}

consumeStamped :: IO Int -> Int -> Ptr Int -> Ptr Int -> IO ()
consumeStamped (IO take') room (Ptr record) moved = case now of
  IO clock -> steps moved room $ \i s -> case clock s of
    (# s1, I# from #) -> case take' s1 of
      (# s2, I# e #) -> case e >=# 0# of
        0# -> (# s2, 0# #)
        _ -> case clock s2 of
          (# s3, I# to #) -> case writeIntOffAddr# record (3# *# i) e s3 of
            s4 -> case writeIntOffAddr# record (3# *# i +# 1#) from s4 of
              s5 -> case writeIntOffAddr# record (3# *# i +# 2#) to s5 of s6 -> (# s6, 1# #)
{-# NOINLINE consumeStamped #-}

now :: IO Int
now = fromIntegral <$> getMonotonicTimeNSec

-- The ends of the tare, which drops elements and makes up those that it returns.
nowhere :: Ends
nowhere = Ends (const (IO (\s -> (# s, () #)))) (IO (\s -> (# s, 0 #)))
{-# NOINLINE nowhere #-}

-- -----------------------------------------------------------------------------------------------------------
-- A run

data Run = Run [(String, JSON)] Ledger [Stamp] Int

type Finished = (Int, Either SomeException Reading)

run :: Traffic -> TellStall -> IO (Maybe Ends) -> Loops -> Int -> IO Run
run t tellStall new loops n = do
  counts <- mallocBytes (128 * workers)
  records <- forM [1 .. consumers t] (\_ -> mallocBytes (8 * room * width loops))
  sent <- forM shares (\m -> mallocBytes (8 * (m + 1)))
  fillBytes counts 0 (128 * workers)
  made <- new
  cores <- max 1 . min workers <$> getNumProcessors
  barrier <- newBarrier workers
  putting' <- newIORef (producers t)
  working <- newIORef workers
  cpu <- newIORef (0, 0)
  events <- newEmptyMVar
  let moved k = counts `plusPtr` (128 * k) :: Ptr Int
      ends = maybe nowhere id made
      finish = lastOf putting' (when (isJust made) (replicateM_ (consumers t) (put ends (-1))))
      producer p stamps m = (\k -> putting loops (put ends) p stamps (moved p) k >> finish, m)
      consumer c record m =
        (\_ -> getting loops (get ends) (if isJust made then room else m) record (moved (producers t + c)), m)
      jobs = zipWith3 producer [0 ..] sent shares ++ zipWith3 consumer [0 ..] records (sharesOf (consumers t))
      begin k (loop, m) = forkOn (1 + k `mod` cores) $ do
        r <- try $ do
          meet barrier (processNs >>= \v -> writeIORef cpu (v, v))
          r <- measured loop m
          lastOf working (processNs >>= \v -> modifyIORef' cpu (\(a, _) -> (a, v)))
          return r
        putMVar events (k, r)
      standing = splitAt (producers t) <$> mapM (peek . moved) [0 .. workers - 1]
  withCapabilities (cores + 1) $ do
    before <- gauges
    ids <- forM (zip [0 ..] jobs) (uncurry begin)
    guard' <- forkOn 0 (watch (stall t) standing tellStall)
    -- After an error the threads may still run, so the memory that they write to is not freed.
    rs <- replicateM workers (takeMVar events >>= judge standing)
      `onException` mapM_ (forkIO . killThread) ids `finally` killThread guard'
    after <- gauges
    (c0, c1) <- readIORef cpu
    (ps, gs) <- standing
    rest <- maybe (return []) (leftovers (sum ps - sum gs)) made
    taken <- forM (zip records gs) (\(r, g) -> mapM (\i -> peekElemOff r (i * width loops)) [0 .. g - 1])
    let ledger = castLedger ps taken rest
        inOrder = map snd (sortByIndex rs)
        wall = fromIntegral (maximum (map ended inOrder) - minimum (map began inOrder)) :: Int
    stamps <- if width loops == 3 && not (isJust (faults ledger))
      then concat <$> zipWithM (stampsOf sent) records gs else return []
    mapM_ free (counts : records ++ sent)
    return $ Run
      ([ ("iterations", JInt n), ("time.wall", JInt wall), ("time.cpu", JInt (c1 - c0))
       , ("alloc.bytes", JInt (sum (map allocated inOrder))) ]
        ++ gaugeEntries before after
        ++ [ ("queue.balance.producers", JNum (jain ps)), ("queue.balance.consumers", JNum (jain gs))
           , ("queue.parallelism", JNum (fromIntegral (c1 - c0) / fromIntegral (max 1 wall))) ]
        ++ [("threads", JArr (zipWith3 thread [0 ..] (ps ++ gs) inOrder))])
      ledger stamps (missed before after)
  where
    workers = producers t + consumers t
    room = 2 * n + 64
    shares = sharesOf (producers t)
    sharesOf parts = [n `div` parts + (if k < n `mod` parts then 1 else 0) | k <- [0 .. parts - 1]]
    sortByIndex rs = [(k, r) | k <- [0 .. workers - 1], (k', r) <- rs, k == k']
    thread k m r = JObj
      [ ("role", JStr (if k < producers t then "producer" else "consumer")), ("iterations", JInt m)
      , ("time.wall", JInt (fromIntegral (ended r - began r))), ("alloc.bytes", JInt (allocated r)) ]

lastOf :: IORef Int -> IO () -> IO ()
lastOf left act = atomicModifyIORef' left (\k -> (k - 1, k - 1)) >>= \k -> when (k == 0) act

stampsOf :: [Ptr Int] -> Ptr Int -> Int -> IO [Stamp]
stampsOf sent record g = forM [0 .. g - 1] $ \i -> do
  e <- peekElemOff record (3 * i)
  at <- peekElemOff (sent !! producerOf e) (placeOf e)
  Stamp at <$> peekElemOff record (3 * i + 1) <*> peekElemOff record (3 * i + 2)

-- A thread that is blocked for ever, as the runtime detects, is a deadlock; this may come before the stall limit.
judge :: IO ([Int], [Int]) -> Finished -> IO (Int, Reading)
judge standing finished = case finished of
  (k, Right r) -> return (k, r)
  (_, Left e)
    | Just BlockedIndefinitelyOnMVar <- fromException e -> endless
    | Just BlockedIndefinitelyOnSTM <- fromException e -> endless
    | otherwise -> throwIO e
  where
    endless = standing >>= \here ->
      throwIO (Refusal "deadlock" ("no progress: a thread waits for ever: " ++ tell here) True [])
    tell (ps, gs) = show (sum ps) ++ " put, " ++ show (sum gs) ++ " got"

-- Tells the host whenever no element has moved for as long as the limit, so that it can see what the threads do.
watch :: Int -> IO ([Int], [Int]) -> TellStall -> IO ()
watch limit standing tellStall = see (-1) 0 0
  where
    see seen since told = do
      (ps, gs) <- standing
      at <- now
      let moved = sum ps + sum gs
      if moved /= seen then again moved at at
        else if at - told < limit then again seen since told
        else do
          tellStall [ ("seconds", JNum (fromIntegral (at - since) / 1e9)), ("put", JInt (sum ps))
                    , ("got", JInt (sum gs)) ]
          again seen since at
    again moved since told = threadDelay (max 1000 (limit `div` 10000)) >> see moved since told

-- The elements left in the queue, if an end mark overtook them; those that do not come within 50 ms are lost.
leftovers :: Int -> Ends -> IO [Int]
leftovers due ends
  | due <= 0 = return []
  | otherwise = do
      found <- newIORef []
      let more k = when (k > 0) $ do
            e <- get ends
            if e >= 0 then modifyIORef' found (e :) >> more (k - 1 :: Int) else more k
      getter <- forkIO (more due `catch` \e -> const (return ()) (e :: SomeException))
      let patient k = do
            threadDelay 50000
            k' <- length <$> readIORef found
            if k' > k && k' < due then patient k' else return ()
      patient 0
      killThread getter
      readIORef found
