-- Hashes words in Haskell. planted.py replaces the text between @.
module Main (main) where

import Data.Bits (xor)
import System.Environment (getArgs)

@HASH@ :: Int -> Int -> Int
@HASH@ start word = go (@ROUNDS@ :: Int) start
  where
    go 0 h = h
    go n h = go (n - 1) ((h * 31 + word) `mod` 16777619)
{-# @INLINE@ @HASH@ #-}

parse :: Int -> Int
parse word = times (@TIMES@ :: Int) word
  where
    times 0 h = h @EXTRA@
    times n h = times (n - 1) (@HASH@ h word)
{-# NOINLINE parse #-}

main :: IO ()
main = do
  arguments <- getArgs
  let count = case arguments of
        [text] -> read text
        _ -> 20000
  print (loop count 7 == (1 :: Int))
  where
    loop :: Int -> Int -> Int
    loop 0 all' = all'
    loop n all' = loop (n - 1) (all' `xor` parse n)
