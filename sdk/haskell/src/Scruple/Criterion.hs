{-# OPTIONS_GHC -O2 #-}

-- | For suites written for the package criterion. The only change is the import of this module instead of
-- @Criterion.Main@ (and of "Scruple.Criterion.Types" instead of @Criterion.Types@). Scruple does sampling,
-- analysis and reports: a 'Config' is accepted and has no effect, nor have criterion's command-line options.
module Scruple.Criterion
  ( defaultMain, defaultMainWith, defaultConfig
  , Benchmark, Benchmarkable, bench, bgroup
  , nf, whnf, nfIO, whnfIO, nfAppIO, whnfAppIO
  , env, envWithCleanup, perBatchEnv, perBatchEnvWithCleanup, perRunEnv, perRunEnvWithCleanup
  ) where

import Control.DeepSeq (NFData)
import Control.Monad (void)
import Data.Int (Int64)
import GHC.Stack (HasCallStack, withFrozenCallStack)

import Scruple.Bench (group, scruple)
import qualified Scruple.Bench as Bench
import Scruple.Bench.Body (forget, nfFound, ownInputs, perBatch, whnfFound)
import Scruple.Bench.Protocol (wholeName)
import Scruple.Criterion.Types

defaultMain :: [Benchmark] -> IO ()
defaultMain = scruple

defaultMainWith :: Config -> [Benchmark] -> IO ()
defaultMainWith _ = scruple

bench :: HasCallStack => String -> Benchmarkable -> Benchmark
bench name body = withFrozenCallStack (wholeName (Bench.bench name body))

bgroup :: String -> [Benchmark] -> Benchmark
bgroup = group

-- | These need no more of the result's type than criterion does. If the result is a plain number, latency is timed,
-- else throughput.
nf :: NFData b => (a -> b) -> a -> Benchmarkable
nf f = forget . nfFound f

whnf :: (a -> b) -> a -> Benchmarkable
whnf f = forget . whnfFound f

nfIO :: NFData a => IO a -> Benchmarkable
nfIO = forget . Bench.nfIO

whnfIO :: IO a -> Benchmarkable
whnfIO = forget . Bench.whnfIO

nfAppIO :: NFData b => (a -> IO b) -> a -> Benchmarkable
nfAppIO f = forget . Bench.nfAppIO f

whnfAppIO :: (a -> IO b) -> a -> Benchmarkable
whnfAppIO f = forget . Bench.whnfAppIO f

-- | The environment is kept until the cases in it are reset or the program ends, since cases are visited in turn.
env :: NFData env => IO env -> (env -> Benchmark) -> Benchmark
env make = Bench.env make (\_ -> return ())

envWithCleanup :: NFData env => IO env -> (env -> IO a) -> (env -> Benchmark) -> Benchmark
envWithCleanup make clean = Bench.env make (void . clean)

perBatchEnv :: (NFData env, NFData b) => (Int64 -> IO env) -> (env -> IO b) -> Benchmarkable
perBatchEnv make = perBatchEnvWithCleanup make (\_ _ -> return ())

perBatchEnvWithCleanup
  :: (NFData env, NFData b) => (Int64 -> IO env) -> (Int64 -> env -> IO ()) -> (env -> IO b) -> Benchmarkable
perBatchEnvWithCleanup make clean = forget . perBatch (make . fromIntegral) (clean . fromIntegral)

-- | As in criterion, every run is timed separately, on an environment made just before it: a batch has one iteration.
perRunEnv :: (NFData env, NFData b) => IO env -> (env -> IO b) -> Benchmarkable
perRunEnv make = perRunEnvWithCleanup make (\_ -> return ())

perRunEnvWithCleanup :: (NFData env, NFData b) => IO env -> (env -> IO ()) -> (env -> IO b) -> Benchmarkable
perRunEnvWithCleanup make clean = forget . ownInputs 1 make clean
