{-# LANGUAGE BangPatterns #-}
{-# LANGUAGE GADTs #-}
{-# LANGUAGE MagicHash #-}
{-# LANGUAGE RankNTypes #-}
{-# LANGUAGE ScopedTypeVariables #-}
{-# LANGUAGE TypeOperators #-}
{-# LANGUAGE UnboxedTuples #-}
-- The compiler must not float bodies out of the loops, with any flags of the user's.
{-# OPTIONS_GHC -O2 -fno-full-laziness -fno-prof-auto #-}

-- | What is weighed: loops, their tares, and batches of them.
module Scruple.Bench.Body
  ( Body (..), nf, whnf, nfIO, whnfIO, nfAppIO, whnfAppIO, nfInput, perBatch, repeatedly, check, digest
  , nfThroughput, whnfThroughput, nfPlain, whnfPlain, nfFound, whnfFound, ownInputs, forget
  , Told (..), Timing (..), timingWord
  , Batch (..), plainBatch, plainOnce
  , Refusal (..), refusal, withCapabilities
  ) where

import Control.Concurrent
import Control.DeepSeq (NFData, rnf)
import Control.Exception
import Control.Monad
import Data.Bits ((.&.))
import Data.Foldable (asum)
import Data.Int (Int16, Int32, Int64, Int8)
import Data.Maybe (fromMaybe, isJust)
import Data.Typeable (Typeable, eqT, typeOf, (:~:) (Refl))
import Data.Word (Word16, Word32, Word64, Word8)
import GHC.Exts
  ( Int (..), Int#, RealWorld, SmallArray#, State#, addr2Int#, andI#, anyToAddr#, dataToTag#, indexSmallArray#
  , newSmallArray#, orI#, runRW#, sizeofArray#, sizeofByteArray#, unpackClosure#, unsafeCoerce#
  , unsafeFreezeSmallArray#, (*#), (-#), (<=#) )
import GHC.IO (IO (..))
import System.IO.Unsafe (unsafePerformIO)

import Scruple.Bench.Barrier
import Scruple.Bench.Json (JSON (..))
import Scruple.Bench.Measure
import Scruple.Bench.SystemThread (waiting)

-- | What the time of an iteration means: from argument to result, or from one result to the next.
data Timing = Latency | Throughput deriving (Eq)

timingWord :: Timing -> String
timingWord Latency = "latency"
timingWord Throughput = "throughput"

-- | A timing that is known beforehand, or found after the body has run once.
data Told = Known Timing | Found (IO Timing)

-- | A body that can be run n times, with its tare: the same loop around a body that does nothing.
data Body b = forall i. Body
  { bodyShape :: String
  , bodyTiming :: Told
  , bodyMost :: Maybe Int -- Set where every iteration has an input of its own.
  , bodyMake :: Int -> IO i
  , bodyFree :: Int -> i -> IO ()
  , bodyLoop :: i -> Int -> IO ()
  , bodyTare :: i -> Int -> IO ()
  , bodyOne :: i -> IO b
  , bodyCheck :: Maybe (b -> Maybe String)
  , bodyDigest :: Maybe (b -> String)
  }

simple :: String -> (Int -> IO ()) -> (Int -> IO ()) -> IO b -> Body b
simple shape loop tare one =
  Body shape (Known Throughput) Nothing (\_ -> return ()) (\_ _ -> return ()) (\_ -> loop) (\_ -> tare) (\_ -> one) Nothing Nothing

-- | Applies a function and evaluates the result, to normal form or to weak head normal form. If the result is a
-- plain number or character, every iteration waits for the result of the previous one, and the tare is the
-- identity on that type; else the tare is the identity on @()@, since it must not walk a large value.
nf :: (NFData b, Typeable b) => (a -> b) -> a -> Body b
nf f x = chained "nf" f x (nfPlain f x)

whnf :: Typeable b => (a -> b) -> a -> Body b
whnf f x = chained "whnf" f x (whnfPlain f x)

-- | Like 'nf', with iterations that do not wait for each other: their throughput is timed.
nfThroughput :: NFData b => (a -> b) -> a -> Body b
nfThroughput = nfPlain

whnfThroughput :: (a -> b) -> a -> Body b
whnfThroughput = whnfPlain

chained :: forall a b. Typeable b => String -> (a -> b) -> a -> Body b -> Body b
chained kind f x plain = fromMaybe plain (asum (map inRow scalars))
  where
    inRow (Scalar (v :: t) loop) = (\Refl -> inLoop v loop) <$> (eqT :: Maybe (t :~: b))
    inLoop :: b -> (forall c. (c -> b) -> Held c -> Int -> IO ()) -> Body b
    inLoop !v loop = case plain of
      Body _ _ most make free _ _ one judge brief ->
        let !input = hold x
            !same = hold v
            shape = kind ++ " " ++ show (typeOf v)
        in Body shape (Known Latency) most make free (const (loop f input)) (const (loop id same)) one judge brief

-- | Like 'nf' for results of any type, known or not, with timing of throughput. The tare is the identity on @()@.
nfPlain :: NFData b => (a -> b) -> a -> Body b
nfPlain f x = untyped "nf" (loopNF rnf f x) (oneNF rnf f x)

whnfPlain :: (a -> b) -> a -> Body b
whnfPlain f x = untyped "whnf" (loopWHNF f x) (oneNF (`seq` ()) f x)

-- | Like 'nf' for results of a type that is unknown before the body has run. If the result is then a plain boxed
-- number, every iteration waits for the result of the previous one.
nfFound :: NFData b => (a -> b) -> a -> Body b
nfFound f x = found f x (nfPlain f x)

whnfFound :: (a -> b) -> a -> Body b
whnfFound f x = found f x (whnfPlain f x)

found :: (a -> b) -> a -> Body b -> Body b
found f x (Body shape _ most make free loop tare one judge brief) =
  Body shape (Found timing) most (\n -> evaluate input >> evaluate same >> make n) free loop' tare' one judge brief
  where
    input = hold x
    same = case numberOf f x of
      Just y -> let !held = hold y in Just held
      Nothing -> Nothing
    timing = return (if isJust same then Latency else Throughput)
    loop' i = if isJust same then chain word f input else loop i
    tare' i = maybe (tare i) (chain word id) same

-- | Returns the result if it has the memory layout of an 'Int': the first constructor of its type, with one word that
-- is not a pointer. Any other result is not kept.
numberOf :: (a -> b) -> a -> Maybe b
numberOf f x = case f x of !y -> if like y (0 :: Int) then Just y else Nothing
{-# NOINLINE numberOf #-}

like :: b -> c -> Bool
like !y !z = size y == size z && tag y == tag z
  where
    size :: d -> (Int, Int)
    size d = case unpackClosure# d of (# _, words#, pointers #) -> (I# (sizeofByteArray# words#), I# (sizeofArray# pointers))
    tag :: d -> Int
    tag d = unsafePerformIO (IO (\s -> case anyToAddr# d s of (# s', address #) -> (# s', I# (addr2Int# address) .&. 7 #)))

-- | Runs an action and evaluates its result.
nfIO :: NFData b => IO b -> Body b
whnfIO :: IO b -> Body b
nfIO act = untyped "nfIO" (loopIO rnf act) (oneIO rnf act)
whnfIO act = untyped "whnfIO" (loopIO (`seq` ()) act) (oneIO (`seq` ()) act)

-- | Applies a function, runs the action that it returns, and evaluates the result.
nfAppIO :: NFData b => (a -> IO b) -> a -> Body b
whnfAppIO :: (a -> IO b) -> a -> Body b
nfAppIO f x = untyped "nfAppIO" (loopApp rnf f x) (oneApp rnf f x)
whnfAppIO f x = untyped "whnfAppIO" (loopApp (`seq` ()) f x) (oneApp (`seq` ()) f x)

-- | A loop of the given kind, with the tare of that kind on @()@.
untyped :: String -> (Int -> IO ()) -> IO b -> Body b
untyped kind loop = simple kind loop (unitTare kind)

-- | Applies an action to a new input in every iteration. All inputs of a batch are made before it, in normal form.
nfInput :: (NFData i, NFData b) => IO i -> (i -> IO b) -> Body b
nfInput make act = ownInputs 1000 make (\_ -> return ()) act

-- | Like 'nfInput', with a bound on the iterations of a batch, and an action on every input afterwards.
ownInputs :: (NFData i, NFData b) => Int -> IO i -> (i -> IO ()) -> (i -> IO b) -> Body b
ownInputs most make free act = Body
  { bodyShape = "nfInput"
  , bodyTiming = Known Throughput
  , bodyMost = Just most
  , bodyMake = \n -> replicateM n (make >>= \i -> evaluate (rnf i) >> return i) >>= \is -> evaluate (length is) >> return is
  , bodyFree = \_ -> mapM_ free
  , bodyLoop = \is _ -> overInputs rnf act is
  , bodyTare = \is _ -> overInputs noPart untouched is
  , bodyOne = \is -> case is of
      i : _ -> oneApp rnf act i
      [] -> ioError (userError "no input was made")
  , bodyCheck = Nothing
  , bodyDigest = Nothing
  }

-- The bodies of the tare over inputs. Written inline, each would be a closure that every batch allocates.

noPart :: () -> ()
noPart () = ()
{-# NOINLINE noPart #-}

untouched :: i -> IO ()
untouched _ = IO (\s -> (# s, () #))
{-# NOINLINE untouched #-}

-- | Runs an action in every iteration on the batch's input; the function that makes it gets the number of iterations.
perBatch :: (NFData e, NFData b) => (Int -> IO e) -> (Int -> e -> IO ()) -> (e -> IO b) -> Body b
perBatch make free act = Body
  { bodyShape = "nfAppIO"
  , bodyTiming = Known Throughput
  , bodyMost = Nothing
  , bodyMake = \n -> make n >>= \e -> evaluate (rnf e) >> return e
  , bodyFree = free
  , bodyLoop = loopApp rnf act
  , bodyTare = \_ -> unitTare "nfAppIO"
  , bodyOne = oneApp rnf act
  , bodyCheck = Nothing
  , bodyDigest = Nothing
  }

-- | A user's own loop, which gets the number of iterations.
repeatedly :: (Int -> IO ()) -> Body ()
repeatedly loop = simple "repeatedly" loop noLoop (loop 1)

-- | A check of the result, run by @once@: it returns what is wrong, or 'Nothing'.
check :: (b -> Maybe String) -> Body b -> Body b
check judge body = body { bodyCheck = Just judge }

-- | A short string for comparing the results of two versions.
digest :: (b -> String) -> Body b -> Body b
digest f body = body { bodyDigest = Just f }

-- | Drops the result, check and digest of a body.
forget :: Body b -> Body ()
forget (Body shape timing most make free loop tare one _ _) =
  Body shape timing most make free loop tare (void . one) Nothing Nothing

-- The loops. None is inlined, so that all cases and tares run the same code, which does not know the function and
-- its argument. They consist of primitive operations and take the state of the world themselves. In a program that is
-- built without optimisation, GHC does not know the definitions of base: each addition would be a call of an unknown
-- function, and a pure loop would run when its action is evaluated, before the clock is read.

type Step = State# RealWorld -> (# State# RealWorld, () #)

loopNF :: (b -> ()) -> (a -> b) -> a -> Int -> IO ()
loopNF !reduce !f x = \(I# iterations) -> IO (go iterations)
  where
    go :: Int# -> Step
    go n s = case n <=# 0# of
      1# -> (# s, () #)
      _ -> case f x of !y -> reduce y `seq` go (n -# 1#) s
{-# NOINLINE loopNF #-}

loopWHNF :: (a -> b) -> a -> Int -> IO ()
loopWHNF !f x = \(I# iterations) -> IO (go iterations)
  where
    go :: Int# -> Step
    go n s = case n <=# 0# of
      1# -> (# s, () #)
      _ -> f x `seq` go (n -# 1#) s
{-# NOINLINE loopWHNF #-}

loopIO :: (b -> ()) -> IO b -> Int -> IO ()
loopIO !reduce (IO !act) = \(I# iterations) -> IO (go iterations)
  where
    go :: Int# -> Step
    go n s = case n <=# 0# of
      1# -> (# s, () #)
      _ -> case act s of (# s', y #) -> reduce y `seq` go (n -# 1#) s'
{-# NOINLINE loopIO #-}

loopApp :: (b -> ()) -> (a -> IO b) -> a -> Int -> IO ()
loopApp !reduce !f x = \(I# iterations) -> IO (go iterations)
  where
    go :: Int# -> Step
    go n s = case n <=# 0# of
      1# -> (# s, () #)
      _ -> case f x of IO act -> case act s of (# s', y #) -> reduce y `seq` go (n -# 1#) s'
{-# NOINLINE loopApp #-}

overInputs :: (b -> ()) -> (i -> IO b) -> [i] -> IO ()
overInputs !reduce !act = \inputs -> IO (go inputs)
  where
    go [] s = (# s, () #)
    go (i : is) s = case act i of IO one -> case one s of (# s', y #) -> reduce y `seq` go is s'
{-# NOINLINE overInputs #-}

noLoop :: Int -> IO ()
noLoop _ = return ()
{-# NOINLINE noLoop #-}

-- One run, with its result; these allocate as little as the loops.

oneNF :: (b -> ()) -> (a -> b) -> a -> IO b
oneNF !reduce !f x = case f x of !y -> reduce y `seq` return y
{-# NOINLINE oneNF #-}

oneIO :: (b -> ()) -> IO b -> IO b
oneIO !reduce !act = act >>= \y -> reduce y `seq` return y
{-# NOINLINE oneIO #-}

oneApp :: (b -> ()) -> (a -> IO b) -> a -> IO b
oneApp !reduce !f x = f x >>= \y -> reduce y `seq` return y
{-# NOINLINE oneApp #-}

unitTare :: String -> Int -> IO ()
unitTare kind = case kind of
  "nf" -> loopNF rnf id ()
  "whnf" -> loopWHNF id ()
  "nfIO" -> loopIO rnf (return ())
  "whnfIO" -> loopIO (`seq` ()) (return ())
  "nfAppIO" -> loopApp rnf return ()
  "whnfAppIO" -> loopApp (`seq` ()) return ()
  _ -> noLoop

-- | A type of plain numbers or characters: a value, and the loop over functions that return one.
data Scalar = forall t. Typeable t => Scalar t (forall a. (a -> t) -> Held a -> Int -> IO ())

scalars :: [Scalar]
scalars =
  [ Scalar (0 :: Int) (chain word), Scalar (0 :: Int8) (chain word), Scalar (0 :: Int16) (chain word)
  , Scalar (0 :: Int32) (chain word), Scalar (0 :: Int64) (chain word), Scalar (0 :: Word) (chain word)
  , Scalar (0 :: Word8) (chain word), Scalar (0 :: Word16) (chain word), Scalar (0 :: Word32) (chain word)
  , Scalar (0 :: Word64) (chain word), Scalar (0 :: Double) (chain word), Scalar (0 :: Float) (chain word)
  , Scalar 'a' (chain word), Scalar True (chain (\ !b -> dataToTag# b))
  , Scalar (0 :: Integer) (chain (\n -> case fromInteger n of I# small -> small)) ]

-- | The first word of an evaluated value of a type whose only constructor has one. The loop masks all of its bits, so
-- those that do not belong to a short number do no harm.
word :: b -> Int#
word y = case unsafeCoerce# y of I# number -> number
{-# INLINE word #-}

-- | An argument in an array of one element, from which every iteration reads it, and a zero unknown to the compiler.
data Held a = Held (SmallArray# a) Int#

hold :: a -> Held a
hold x = case runRW# (\s -> case newSmallArray# 1# x s of (# s', m #) -> unsafeFreezeSmallArray# m s') of
  (# _, array #) -> Held array 0#
{-# NOINLINE hold #-}

-- | The index from which an iteration reads its argument is computed from the previous result and a mask, which
-- is zero, unknown to compiler and processor. If iterations were independent, the processor would run several at
-- once, and the calls around the body would hide steps of a few cycles.
chain :: (b -> Int#) -> (a -> b) -> Held a -> Int -> IO ()
chain number = \ !f (Held array none) (I# iterations) ->
  let go :: Int# -> Int# -> Step
      go n place s = case n <=# 0# of
        1# -> (# s, () #)
        _ -> case indexSmallArray# array place of
          (# x #) -> case f x of !y -> go (n -# 1#) (slowly (number y `orI#` place) `andI#` none) s
  in IO (go iterations 0#)
{-# INLINE chain #-}

-- | Five multiplications, each of which waits for the previous one. The half dozen jumps of a call of an unknown
-- function take a processor 12 or 15 cycles, depending on its branch predictor, and those of a short function add
-- some ten. Without the multiplications the path from argument to result is shorter than that, and the jumps would
-- decide whether a net of a few cycles is visible. With them the path is the longer of the two.
slowly :: Int# -> Int#
slowly a = e *# e
  where
    !b = a *# a
    !c = b *# b
    !d = c *# c
    !e = d *# d
{-# INLINE slowly #-}

-- | The entry of a batch, and the number of events that its counters missed.
data Batch = Batch { batchRow :: [(String, JSON)], batchMissed :: Int }

-- | Runs a batch of a plain body. The arguments after the body: whether it is the tare, the iterations of each thread,
-- and the number of threads.
plainBatch :: Body b -> Bool -> Int -> Maybe Int -> IO Batch
plainBatch body tare n count
  | maybe True (== 1) count = oneThread body tare n
  | not rtsSupportsBoundThreads =
      throwIO (refusal "unsupported" "several threads need a program linked with -threaded")
  | otherwise = threadsBatch body tare n (fromMaybe 1 count)

entry :: Int -> Reading -> [(String, JSON)]
entry n r =
  [("iterations", JInt n), ("time.wall", JInt (fromIntegral (ended r - began r)))]
    ++ [("time.cpu", JInt ns) | Just ns <- [cpuTime r]] ++ [("alloc.bytes", JInt (allocated r))]

oneThread :: Body b -> Bool -> Int -> IO Batch
oneThread Body { bodyTiming = told, bodyMake = make, bodyFree = free, bodyLoop = loop, bodyTare = empty } tare n =
  bracket (make n) (free n) $ \i -> do
    let !run = if tare then empty i else loop i
    a <- gauges
    (r, number, slowest) <- witnessed run n
    b <- gauges
    timing <- case told of
      Known _ -> return []
      Found act -> (\t -> [("timing", JStr (timingWord t))]) <$> act
    return (Batch (entry n r ++ [("thread", JInt t) | Just t <- [number], isJust (cpuTime r)] ++ [("witness", JInt slowest)] ++ timing ++ gaugeEntries a b) (missed a b))

threadsBatch :: Body b -> Bool -> Int -> Int -> IO Batch
threadsBatch Body { bodyMake = make, bodyFree = free, bodyLoop = loop, bodyTare = empty } tare n count =
  bracket (replicateM count (make n)) (mapM_ (free n)) $ \inputs -> withCapabilities count $ do
    barrier <- newBarrier count
    a <- gauges
    boxes <- forM (zip [0 ..] inputs) $ \(k, i) -> do
      box <- newEmptyMVar
      let !run = if tare then empty i else loop i
      _ <- forkOn k (try (waiting (meet barrier (return ()) >> measured run n)) >>= putMVar box)
      return box
    outcomes <- mapM takeMVar boxes
    b <- gauges
    (rs, waits) <- unzip <$> mapM (either (throwIO :: SomeException -> IO a) return) outcomes
    let whole = Reading
          { began = minimum (map began rs), ended = maximum (map ended rs)
          , cpuTime = sum <$> mapM cpuTime rs, allocated = sum (map allocated rs) }
    return (Batch (entry (n * count) whole ++ gaugeEntries a b ++ [("threads", JArr (zipWith thread rs waits))])
      (missed a b))
  where
    thread r waited = JObj (entry n r ++ [("waited", JInt ns) | Just ns <- [waited]])

-- | Runs an action with at least this many capabilities. Cases of one thread keep the program's number. Setting
-- the number waits for all threads, so it is not restored if threads are stuck.
withCapabilities :: Int -> IO a -> IO a
withCapabilities count act = do
  before <- getNumCapabilities
  let more = rtsSupportsBoundThreads && count > before
  when more (setNumCapabilities count)
  outcome <- try act
  case outcome of
    Left e | Just Refusal { refusalFatal = True } <- fromException e -> throwIO e
    _ -> when more (setNumCapabilities before)
  either throwIO return outcome

plainOnce :: Body b -> IO [(String, JSON)]
plainOnce Body { bodyMake = make, bodyFree = free, bodyOne = one, bodyCheck = judge, bodyDigest = brief } =
  bracket (make 1) (free 1) $ \i -> do
    y <- one i
    why <- evaluate (judge >>= ($ y))
    return $ [("ok", JBool (not (isJust why))), ("checked", JBool (isJust judge))]
      ++ [("why", JStr w) | Just w <- [why]] ++ [("digest", JStr (f y)) | Just f <- [brief]]


-- | A request that cannot be answered: the kind of error, its text, whether the program must end, further fields.
data Refusal = Refusal { refusalKind, refusalText :: String, refusalFatal :: Bool, refusalMore :: [(String, JSON)] }

instance Show Refusal where show = refusalText
instance Exception Refusal

refusal :: String -> String -> Refusal
refusal kind text = Refusal kind text False []
