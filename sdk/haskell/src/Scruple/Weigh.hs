{-# LANGUAGE BangPatterns #-}
{-# OPTIONS_GHC -O2 #-}

-- | For suites written for the package weigh. The only change is the import of this module instead of @Weigh@.
--
-- As in weigh, every case gets its own process, and its first iteration there is counted: that is the figure that
-- weigh prints. Settings of columns and formats are accepted and have no effect. Limits made by 'maxAllocs' become
-- budgets, which Scruple compares with its own readings. @once@ runs every validator on the weights of one run,
-- except for allocations, which the budget checks: an exceeded limit is not a failure of the case.
module Scruple.Weigh
  ( mainWith
  , setColumns, Column (..), setFormat, Format (..), setConfig, Config (..), defaultConfig
  , func, func', io, value, action, wgroup, validateAction, validateFunc, maxAllocs
  , Weigh, Weight (..), commas
  ) where

import Control.DeepSeq (NFData, force)
import Control.Exception (SomeException, bracket, evaluate, try)
import Data.IORef (newIORef, readIORef, writeIORef)
import Data.List (intercalate)
import Data.Maybe (isJust, isNothing)
import Data.Word (Word32, Word64)
import GHC.Stack (HasCallStack, callStack)
import System.IO.Unsafe (unsafePerformIO)

import Scruple.Bench (JSON (..), Suite, env, fresh, group, leaf, scruple)
import Scruple.Bench.Body
import Scruple.Bench.Measure
import qualified Scruple.Bench.Protocol as Protocol

data Column = Case | Allocated | GCs | Live | Check | Max | MaxOS | MaxRss | WallTime
  deriving (Show, Eq, Enum)

data Format = Plain | Markdown
  deriving (Show)

data Config = Config { configColumns :: [Column], configPrefix :: String, configFormat :: Format }
  deriving (Show)

defaultConfig :: Config
defaultConfig = Config [Case, Allocated, GCs] "" Plain

-- | The weights of one run.
data Weight = Weight
  { weightLabel :: String
  , weightAllocatedBytes :: Word64
  , weightGCs :: Word32
  , weightLiveBytes :: Word64
  , weightMaxBytes :: Word64
  , weightMaxOSBytes :: Word64
  , weightMaxRssBytes :: Word64 -- ^ Always 0 here: Scruple reads it from outside.
  , weightWallTime :: Double
  } deriving (Read, Show)

-- | Cases in the order of declaration.
newtype Weigh a = Weigh ([Suite] -> (a, [Suite])) -- The list is in reverse.

instance Functor Weigh where
  fmap f (Weigh m) = Weigh (\s -> let (a, s') = m s in (f a, s'))

instance Applicative Weigh where
  pure a = Weigh (\s -> (a, s))
  Weigh f <*> Weigh m = Weigh (\s -> let { (g, s') = f s; (a, s'') = m s' } in (g a, s''))

instance Monad Weigh where
  Weigh m >>= f = Weigh (\s -> let { (a, s') = m s; Weigh m' = f a } in m' s')

suitesOf :: Weigh a -> (a, [Suite])
suitesOf (Weigh m) = reverse <$> m []

mainWith :: Weigh a -> IO ()
mainWith = scruple . snd . suitesOf

setColumns :: [Column] -> Weigh ()
setColumns _ = pure ()

setFormat :: Format -> Weigh ()
setFormat _ = pure ()

setConfig :: Config -> Weigh ()
setConfig _ = pure ()

wgroup :: String -> Weigh () -> Weigh ()
wgroup name m = Weigh (\s -> ((), group name (snd (suitesOf m)) : s))

-- | A function applied to an argument. As in weigh, the argument is evaluated to weak head normal form beforehand.
-- Evaluating further parts of it is counted only for the first run in a process.
func :: (HasCallStack, NFData a) => String -> (b -> a) -> b -> Weigh ()
func name f x = declare Nothing name (nfPlain f x) Nothing (x `seq` ())

-- | Like 'func', with the argument evaluated to normal form beforehand.
func' :: (HasCallStack, NFData a, NFData b) => String -> (b -> a) -> b -> Weigh ()
func' name f x = let y = force x in declare Nothing name (nfPlain f y) Nothing (y `seq` ())

io :: (HasCallStack, NFData a) => String -> (b -> IO a) -> b -> Weigh ()
io name f x = declare Nothing name (nfAppIO f x) Nothing (x `seq` ())

-- | A value. Its evaluation is counted once in a process, so a batch has one iteration.
value :: (HasCallStack, NFData a) => String -> a -> Weigh ()
value name v = declare (Just 1) name (nfPlain id v) Nothing (v `seq` ())

action :: (HasCallStack, NFData a) => String -> IO a -> Weigh ()
action name m = declare Nothing name (nfIO m) Nothing ()

validateFunc :: (HasCallStack, NFData a) => String -> (b -> a) -> b -> (Weight -> Maybe String) -> Weigh ()
validateFunc name f x judge = declare Nothing name (nfPlain f x) (Just judge) (x `seq` ())

validateAction :: (HasCallStack, NFData a) => String -> (b -> IO a) -> b -> (Weight -> Maybe String) -> Weigh ()
validateAction name f x judge = declare Nothing name (nfAppIO f x) (Just judge) (x `seq` ())

maxAllocs :: Word64 -> Weight -> Maybe String
maxAllocs n w
  | weightAllocatedBytes w > n =
      Just ("Allocated bytes exceeds " ++ commas n ++ ": " ++ commas (weightAllocatedBytes w))
  | otherwise = Nothing

declare :: HasCallStack => Maybe Int -> String -> Body a -> Maybe (Weight -> Maybe String) -> () -> Weigh ()
declare most name body judge ready = Weigh (\s -> ((), env (evaluate ready) return (const suite) : s))
  where
    suite = fresh (Protocol.wholeName (leaf callStack name (Just (bodyShape body)) work change))
    work = Protocol.Special
      { Protocol.specialBatch = const (plainBatch body)
      , Protocol.specialOnce = const (onceWeighed name body (besides <$> judge)) }
    change c = c
      { Protocol.caseMaxIterations = most, Protocol.caseBudgets = limit
      , Protocol.caseFirst = True
      , Protocol.caseChecked = isJust judge, Protocol.caseReadings = liveReadings }
    most' = judge >>= limitOf
    limit = [("alloc.bytes", [("max", JInt (fromIntegral n))]) | Just n <- [most']]
    besides judge' w = judge' (maybe w (\n -> w { weightAllocatedBytes = min n (weightAllocatedBytes w) }) most')

-- A validator is a function, so its limit is found by trial calls. A validator of another kind has no budget.
limitOf :: (Weight -> Maybe String) -> Maybe Word64
limitOf judge = unsafePerformIO (either noLimit id <$> try (evaluate found))
  where
    noLimit e = const Nothing (e :: SomeException)
    top = 2 ^ (53 :: Int) - 1
    passes n = isNothing (judge (Weight "" n 0 0 0 0 0 0))
    found | passes 0, not (passes top) = Just $! search 0 top
          | otherwise = Nothing
    search low high
      | high - low <= 1 = low
      | passes middle = search middle high
      | otherwise = search low middle
      where middle = low + (high - low) `div` 2

-- Weighs one run between two full collections. Its result is still reachable at the second.
onceWeighed :: String -> Body a -> Maybe (Weight -> Maybe String) -> IO [(String, JSON)]
onceWeighed name Body { bodyMake = make, bodyFree = free, bodyOne = one } judge = bracket (make 1) (free 1) $ \i -> do
  box <- newIORef undefined
  let !run = one i
  before <- heapState
  g0 <- gauges
  r <- measuredAlone (\_ -> run >>= writeIORef box) 1
  g1 <- gauges
  after <- heapState
  result <- readIORef box
  let grown f = if f after > f before then f after - f before else 0
      weight = Weight
        { weightLabel = name, weightAllocatedBytes = fromIntegral (allocated r), weightGCs = gcs g1 - gcs g0
        , weightLiveBytes = grown liveBytes, weightMaxBytes = grown maxLiveBytes
        , weightMaxOSBytes = grown maxMappedBytes, weightMaxRssBytes = 0
        , weightWallTime = fromIntegral (ended r - began r) / 1e9 }
      wrong = judge >>= ($ weight)
  return (result `seq` [("ok", JBool (not (isJust wrong))), ("checked", JBool (isJust judge))]
    ++ [("why", JStr w) | Just w <- [wrong]]
    ++ [ (counterKey c, JInt (fromIntegral (f weight)))
       | (c, f) <- zip liveReadings [weightLiveBytes, weightMaxBytes, weightMaxOSBytes] ])

-- The readings for the columns Live, Max and MaxOS: what is alive after the run, and the rise of the most that was
-- alive and that was mapped.
liveReadings :: [Counter]
liveReadings = [ metric key "bytes" "near" | key <- ["ghc.live", "ghc.live.max", "ghc.mapped.max"] ]

-- | Formats an integer with its digits in groups of three.
commas :: (Num a, Integral a, Show a) => a -> String
commas n = case span (== '-') (show n) of
  (sign, digits) -> sign ++ reverse (intercalate "," (groups (reverse digits)))
  where
    groups ds = case splitAt 3 ds of
      (g, []) -> [g]
      (g, rest) -> g : groups rest
