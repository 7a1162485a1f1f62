{-# OPTIONS_GHC -O2 #-}

-- | The ledger of the elements that went through a queue, and how close the queue was to first-in first-out.
module Scruple.Queue.Ledger
  ( element, producerOf, placeOf
  , Ledger (..), castLedger, faults, ledgerRow, jain
  , Stamp (..), fairnessRow
  ) where

import Data.Bits (shiftL, shiftR, (.&.))
import Data.List (foldl', sort, sortOn)
import GHC.Arr (Array, accumArray, elems, listArray, (!))

import Scruple.Bench.Json (JSON (..))

-- | An element is its producer's number and its place in that producer's sequence.
element :: Int -> Int -> Int
element p i = p `shiftL` 40 + i

producerOf, placeOf :: Int -> Int
producerOf e = e `shiftR` 40
placeOf e = e .&. (1 `shiftL` 40 - 1)

data Ledger = Ledger { puts, gots, lost, duplicated, invented, broken :: Int }

-- | Makes the ledger. Arguments: the number of elements that each producer put, the elements that each consumer took,
-- in order, and the elements that were left in the queue.
castLedger :: [Int] -> [[Int]] -> [Int] -> Ledger
castLedger sent taken rest = Ledger
  { puts = total, gots = length everything
  , lost = length (filter (== 0) times), duplicated = sum [k - 1 | k <- times, k > 1]
  , invented = length everything - sum times
  , broken = sum [breaks [placeOf e | e <- es, producerOf e == p] | es <- taken, p <- [0 .. length sent - 1]] }
  where
    total = sum sent
    everything = concat taken ++ rest
    begins = listArray (0, length sent - 1) (zip (scanl (+) 0 sent) sent) :: Array Int (Int, Int)
    index e = let (from, k) = begins ! producerOf e in
      if e >= 0 && producerOf e < length sent && placeOf e < k then Just (from + placeOf e) else Nothing
    times = elems (accumArray (+) 0 (0, total - 1) [(i, 1) | Just i <- map index everything] :: Array Int Int)
    breaks is = snd (foldl' later (-1, 0 :: Int) is)
    later (top, n) i = if i < top then (top, n + 1) else (i, n)

faults :: Ledger -> Maybe String
faults l
  | lost l + duplicated l + invented l == 0 = Nothing
  | otherwise = Just (show (lost l) ++ " elements lost, " ++ show (duplicated l) ++ " duplicated, "
      ++ show (invented l) ++ " invented, of " ++ show (puts l))

ledgerRow :: Ledger -> [(String, JSON)]
ledgerRow l = [ ("queue." ++ key, JInt (f l)) | (key, f) <-
  [ ("put", puts), ("got", gots), ("lost", lost), ("duplicated", duplicated), ("invented", invented)
  , ("order_broken", broken) ] ]

-- | Jain's index: 1 if all shares are equal, 1/n if one member does everything.
jain :: [Int] -> Double
jain xs
  | sum xs == 0 = 1
  | otherwise = square (sum xs) / (fromIntegral (length xs) * sum (map square xs))
  where square x = fromIntegral x * fromIntegral x

-- | The times of one element: start of its put, start and end of the get that returned it.
data Stamp = Stamp { putAt, getAt, gotAt :: !Int }

-- | The readings of fairness. Lateness of an element: the number of elements that overtook it (put later, taken
-- earlier). Age: the number of elements that it overtook.
fairnessRow :: [Stamp] -> [(String, JSON)]
fairnessRow [] = []
fairnessRow stamps =
  [ ("queue.late.share", JNum (fromIntegral (length (filter (> 0) late)) / fromIntegral n)) ]
    ++ spread "queue.late." late ++ spread "queue.age." age
    ++ [ ("queue.sojourn.p50", JInt (quantile 0.5 stay)), ("queue.sojourn.p99", JInt (quantile 0.99 stay))
       , ("queue.sojourn.max", JInt (last stay)) ]
  where
    n = length stamps
    ranks = sortedRanks (map getAt stamps)
    byPut = groupOn fst (sortOn fst (zip (map putAt stamps) ranks))
    late = sort (overtaking (\r -> (1, r - 1)) (reverse byPut))
    age = sort (overtaking (\r -> (r + 1, n)) byPut)
    stay = sort [gotAt s - putAt s | s <- stamps]
    overtaking range groups = concat (count n range (map (map snd) groups))
    spread prefix xs =
      [ (prefix ++ "mean", JNum (fromIntegral (sum xs) / fromIntegral n)), (prefix ++ "p99", JInt (quantile 0.99 xs))
      , (prefix ++ "max", JInt (last xs)) ]

-- | The nearest-rank quantile of a sorted list: the smallest value that is not below that share of the values.
quantile :: Double -> [a] -> a
quantile q xs = xs !! max 0 (ceiling (q * fromIntegral (length xs)) - 1)

-- | Returns ranks from 1, equal ones for equal values, in the order of the list.
sortedRanks :: [Int] -> [Int]
sortedRanks xs = map snd (sortOn fst (concat (zipWith (\r g -> [(i, r) | (_, i) <- g]) [1 ..] groups)))
  where groups = groupOn fst (sort (zip xs [0 :: Int ..]))

groupOn :: Eq b => (a -> b) -> [a] -> [[a]]
groupOn f xs = case xs of
  [] -> []
  x : _ -> let (same, rest) = span ((== f x) . f) xs in same : groupOn f rest

-- | For each rank, counts the ranks of earlier groups that lie in its range, with a persistent segment tree over 1 to
-- n.
count :: Int -> (Int -> (Int, Int)) -> [[Int]] -> [[Int]]
count n range = go (Node 0 Tip Tip)
  where
    go _ [] = []
    go tree (ranks : rest) = map (between tree 1 n . range) ranks : go (foldl' (insert 1 n) tree ranks) rest

data Tree = Tip | Node !Int Tree Tree

insert :: Int -> Int -> Tree -> Int -> Tree
insert from to tree r
  | from == to = Node (k + 1) Tip Tip
  | r <= middle = Node (k + 1) (insert from middle a r) b
  | otherwise = Node (k + 1) a (insert (middle + 1) to b r)
  where
    middle = (from + to) `div` 2
    (k, a, b) = case tree of { Tip -> (0, Tip, Tip); Node k' a' b' -> (k', a', b') }

between :: Tree -> Int -> Int -> (Int, Int) -> Int
between Tip _ _ _ = 0
between (Node k a b) from to (low, high)
  | high < from || to < low = 0
  | low <= from && to <= high = k
  | otherwise = between a from middle (low, high) + between b (middle + 1) to (low, high)
  where middle = (from + to) `div` 2
