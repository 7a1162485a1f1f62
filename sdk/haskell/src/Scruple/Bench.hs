{-# OPTIONS_GHC -O2 #-}
{-# LANGUAGE ScopedTypeVariables #-}

-- | Cases for Scruple.
--
-- > import Scruple.Bench
-- > main = scruple [ group "sort" [ list n | n <- [10, 100, 1000] ] ]
-- > list n = param "n" (fromIntegral n) (bench "list" (nf sort [n, n - 1 .. 1 :: Int]))
--
-- An SDK names cases, loops, and reads clocks and counters. Warming up, repeating and judging are Scruple's
-- work.
module Scruple.Bench
  ( -- * Suites
    Suite, scruple, group, bench, env
    -- * What is weighed
  , Body, nf, whnf, nfThroughput, whnfThroughput, nfIO, whnfIO, nfAppIO, whnfAppIO, nfInput, perBatch, repeatedly, check, digest, skip
    -- * What is said about cases (it holds for all cases below)
  , param, variant, items, bytes, threads, atMost, budget, inGroup, tagged, fresh, maxIterations, timeLimit
  , JSON (..)
    -- * For modules that build on this one
  , leaf
  ) where

import Control.DeepSeq (NFData, rnf)
import Control.Exception (evaluate, throw)
import Data.Maybe (isJust)
import GHC.Stack

import Scruple.Bench.Body
import Scruple.Bench.Json (JSON (..))
import Scruple.Bench.Protocol

group :: String -> [Suite] -> Suite
group = Group

-- | A case. Its name, with those of the groups around it, is its path.
bench :: HasCallStack => String -> Body b -> Suite
bench name body@Body { bodyShape = shape, bodyTiming = told, bodyMost = most, bodyCheck = judge } =
  leaf callStack name (Just shape) (Plain body)
    (\c -> c { caseTiming = case told of { Known t -> Just t; Found _ -> Nothing }, caseOwnInputs = isJust most, caseMaxIterations = most, caseChecked = isJust judge })

-- | A case of any kind, with its shape and a change to the fields that follow from its kind.
leaf :: CallStack -> String -> Maybe String -> Work -> (Case -> Case) -> Suite
leaf stack name shape work change = Leaf (change Case
  { caseName = name, caseGroup = Nothing, caseShape = shape, caseTiming = Nothing, caseParams = [], caseThroughput = Nothing
  , caseThreads = [1], caseBudgets = [], caseTags = [], caseFresh = False, caseFirst = False, caseOwnInputs = False
  , caseMaxIterations = Nothing, caseTimeLimit = Nothing, caseChecked = False, caseSource = source
  , caseReadings = [], caseConcurrency = Nothing, caseWork = work })
  where
    source = case getCallStack stack of
      [] -> Nothing
      calls -> let at = snd (last calls) in Just (srcLocFile at ++ ":" ++ show (srcLocStartLine at))

-- | Makes an environment for the cases below, in normal form, at the first request for one of them; and releases
-- it at the end or when one of them is reset. The function should be lazy in it, since cases are listed without
-- making it; if it is strict, the environment is made for the listing.
env :: NFData e => IO e -> (e -> IO ()) -> (e -> Suite) -> Suite
env make = Env (make >>= \e -> evaluate (rnf e) >> return e)

-- | Ends the case that runs, because it cannot run here: Scruple shows it as skipped, with this reason.
skip :: String -> a
skip why = throw (refusal "skipped" why)

-- | A number that distinguishes cases of one name. Scruple fits growth over it.
param :: String -> Double -> Suite -> Suite
param key v = Adjust (\c -> c { caseParams = (key, JNum v) : caseParams c })

-- | A word that distinguishes cases of one name.
variant :: String -> String -> Suite -> Suite
variant key v = Adjust (\c -> c { caseParams = (key, JStr v) : caseParams c })

-- | The number of items, or of bytes, that one iteration processes.
items, bytes :: Double -> Suite -> Suite
items n = Adjust (\c -> c { caseThroughput = Just ("items", n) })
bytes n = Adjust (\c -> c { caseThroughput = Just ("bytes", n) })

-- | The numbers of threads a case is to be run with (link with @-threaded@).
threads :: [Int] -> Suite -> Suite
threads ns = Adjust (\c -> c { caseThreads = ns })

-- | A limit per iteration, such as @atMost "alloc.bytes" 320@.
atMost :: String -> Double -> Suite -> Suite
atMost key n = budget key [("max", JNum n)]

-- | A limit in the form of the protocol, such as @budget "time.wall" [("max", JStr "+5%"), ("against", JStr
-- "baseline")]@.
budget :: String -> [(String, JSON)] -> Suite -> Suite
budget key limits = Adjust (\c -> c { caseBudgets = (key, limits) : caseBudgets c })

-- | The group in reports; by default those around the case, or, if there are none, its name up to the last slash.
inGroup :: String -> Suite -> Suite
inGroup name = Adjust (\c -> c { caseGroup = Just name })

tagged :: [String] -> Suite -> Suite
tagged ts = Adjust (\c -> c { caseTags = caseTags c ++ ts })

-- | Times the case in separate processes.
fresh :: Suite -> Suite
fresh = Adjust (\c -> c { caseFresh = True })

maxIterations :: Int -> Suite -> Suite
maxIterations n = Adjust (\c -> c { caseMaxIterations = Just n })

-- | The time limit of one batch, in nanoseconds.
timeLimit :: Int -> Suite -> Suite
timeLimit n = Adjust (\c -> c { caseTimeLimit = Just n })
