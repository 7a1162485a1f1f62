{-# LANGUAGE BangPatterns #-}

-- | A suite for the package criterion; here its imports of @Criterion.Main@ and @Criterion.Types@ are
-- changed.
module Main (main) where

import qualified Data.ByteString.Char8 as B
import Data.IORef
import Data.List (sort)
import Scruple.Criterion
import Scruple.Criterion.Types (Config (..))
import System.Directory (getTemporaryDirectory, removeFile)
import System.IO (hClose, openTempFile)

main :: IO ()
main = defaultMainWith defaultConfig { timeLimit = 1 }
  [ bgroup "sum" [bench (show n) (nf sum [1 .. n]) | n <- [2, 4, 5 :: Int]]
  , bgroup "whnf" [bench "maximum" (whnf maximum [3, 1, 4, 1, 5 :: Int])]
  , env (return [n * 7919 `mod` 10007 | n <- [1 .. 1000 :: Int]]) $ \xs ->
      bgroup "env" [bench "sort" (nf sort xs), bench "length" (whnf length xs)]
  , env ((,) <$> return (B.replicate 1000 'a') <*> newIORef (0 :: Int)) $ \ ~(bytes, total) ->
      bgroup "a pair" [bench "count" (nf (B.count 'a') bytes), bench "add" (nfIO (modifyIORef' total (+ 1)))]
  , envWithCleanup textFile removeFile $ \path ->
      bgroup "file"
        [bench "read" (nfIO (B.readFile path)), bench "words" (nfAppIO (fmap (length . B.words) . B.readFile) path)]
  , bgroup "made for it"
      [ bench "per batch" (perBatchEnv (\n -> newIORef n) (\r -> modifyIORef' r (subtract 1)))
      , bench "per run" (perRunEnv (newIORef [3, 1, 2 :: Int]) (\r -> modifyIORef r sort >> readIORef r))
      ]
  , bgroup "speed" [bench "miles/hour" (whnf (/ 7) (3 :: Double))]
  , bench "whnfIO" (whnfIO (return $! length "abc"))
  , bench "whnfAppIO" (whnfAppIO (\n -> return (n + 1)) (1 :: Int))
  ]

textFile :: IO FilePath
textFile = do
  folder <- getTemporaryDirectory
  (path, h) <- openTempFile folder "words.txt"
  B.hPut h (B.unwords (replicate 200 (B.pack "word")))
  hClose h
  return path
