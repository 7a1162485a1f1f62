-- | Encoding a boxed vector of numbers with store and with cereal. This suite also runs with the package weigh,
-- with its import changed to @Weigh@.
module Main (main) where

import qualified Data.ByteString as B
import Data.Int (Int64)
import qualified Data.Serialize as Cereal
import qualified Data.Store as Store
import qualified Data.Vector as V
import Scruple.Weigh

main :: IO ()
main = mainWith $ mapM_ encodings [100, 10000, 1000000]

encodings :: Int -> Weigh ()
encodings n = wgroup (show n) $ do
  func' "store" Store.encode v
  func' "cereal" cereal v
  func' "the vector alone" (V.map (+ 1)) v
  where v = V.enumFromTo 1 (fromIntegral n) :: V.Vector Int64

cereal :: V.Vector Int64 -> B.ByteString
cereal v = Cereal.runPut (Cereal.putWord64le (fromIntegral (V.length v)) >> V.mapM_ Cereal.put v)
