-- | FNV-1: one step costs less than the harness around it, which the tare subtracts. The two loops take about
-- 1 µs and 1 ms.
module Main (main) where

import Data.Bits (xor)
import Data.Word (Word32)
import Scruple.Bench

main :: IO ()
main = scruple
  [ group "fnv"
      [ bench "identity" (nf id x)
      , param "steps" 1 (bench "steps" (check (wrong 1) (nf fnv1 x)))
      , param "steps" 4 (bench "steps" (check (wrong 4) (nf fnv4 x)))
      , param "steps" 8 (bench "steps" (check (wrong 8) (nf fnv8 x)))
      ]
  , group "loop"
      [ bench "us" (nf (rounds 1000) x)
      , bench "ms" (nf (rounds 1000000) x)
      ]
  ]
  where
    x = 0xdeadbeef :: Word32
    wrong n y = if y == rounds n x then Nothing else Just ("expected " ++ show (rounds n x) ++ ", got " ++ show y)

step :: Word32 -> Word32 -> Word32
step b h = (h * 16777619) `xor` b
{-# INLINE step #-}

fnv1, fnv4, fnv8 :: Word32 -> Word32
-- Written with their argument and not inlined: each is a separate function, and its own code is weighed.
fnv1 h = step 0 h
fnv4 h = step 3 (step 2 (step 1 (step 0 h)))
fnv8 h = step 7 (step 6 (step 5 (step 4 (fnv4 h))))
{-# NOINLINE fnv1 #-}
{-# NOINLINE fnv4 #-}
{-# NOINLINE fnv8 #-}

rounds :: Int -> Word32 -> Word32
rounds n = go 0
  where
    go i h
      | i >= n = h
      | otherwise = go (i + 1) (step (fromIntegral i) h)
