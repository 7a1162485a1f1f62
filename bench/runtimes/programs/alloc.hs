-- N cells of 24 bytes, the last 10,000 kept alive.
{-# LANGUAGE BangPatterns #-}
module Main (main) where

import Data.Array.IO (IOArray, newArray, readArray, writeArray)
import System.Environment (getArgs)

data Cell = Cell !Int !Int

main :: IO ()
main = do
  [n] <- map read <$> getArgs
  ring <- newArray (0, 9999) (Cell 0 0) :: IO (IOArray Int Cell)
  let go :: Int -> IO ()
      go !i | i >= n = return ()
            | otherwise = do
                let cell = Cell i (i * 2)
                cell `seq` writeArray ring (i `rem` 10000) cell
                go (i + 1)
  go 0
  Cell a b <- readArray ring 7
  print (a + b > 0)
