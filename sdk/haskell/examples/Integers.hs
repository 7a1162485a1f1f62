{-# LANGUAGE BangPatterns #-}

-- | The cost of counting: 0 bytes a step for an Int, some for an Integer; and the cost of a field. This suite
-- also runs with the package weigh, with its import changed to @Weigh@.
module Main (main) where

import Control.DeepSeq (NFData (..))
import Scruple.Weigh

main :: IO ()
main = mainWith $ do
  wgroup "Integer" $ do
    wgroup "count" $ mapM_ (\n -> func (show n) count n) steps
    wgroup "count'" $ mapM_ (\n -> func (show n) count' n) steps
  wgroup "Int" $ mapM_ (\n -> validateFunc (show n) countInt n (maxAllocs 16)) [0, 1, 2, 3, 10, 100, 1000000]
  wgroup "struct" $ do
    func "\\x -> HasInt x" (\x -> HasInt x) 5
    func "\\x -> HasPacked (HasInt x)" (\x -> HasPacked (HasInt x)) 5
    func "\\x -> HasUnpacked (HasInt x)" (\x -> HasUnpacked (HasInt x)) 5
  wgroup "other forms" $ do
    func' "sum of a list" (sum :: [Int] -> Int) [1 .. 1000]
    io "replicate" (\n -> return (replicate n 'x')) 100
    action "an action" (return (length (show (2 ^ (1000 :: Int) :: Integer))))
    value "a value" [1 .. 10 :: Int]
  where steps = [0, 1, 2, 3, 10, 100]

count :: Integer -> ()
count 0 = ()
count a = count (a - 1)

count' :: Integer -> ()
count' 0 = ()
count' a = count' (a + (-1))

countInt :: Int -> ()
countInt 0 = ()
countInt a = countInt (a - 1)

data HasInt = HasInt !Int
data HasPacked = HasPacked HasInt
data HasUnpacked = HasUnpacked {-# UNPACK #-} !HasInt

instance NFData HasInt where rnf (HasInt !_) = ()
instance NFData HasPacked where rnf (HasPacked x) = rnf x
instance NFData HasUnpacked where rnf (HasUnpacked !_) = ()
