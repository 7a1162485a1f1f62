{-# OPTIONS_GHC -O2 #-}

-- | The words of requests, and the JSON of replies.
module Scruple.Bench.Json (JSON (..), render, number, splitOn) where

import Data.Char (isDigit, ord)
import Numeric (showHex)

number :: String -> Maybe Int
number w
  | not (null w), all isDigit w, length w <= 15 = Just (read w)
  | otherwise = Nothing


splitOn :: Char -> String -> [String]
splitOn sep s = case break (== sep) s of
  (w, _ : rest) -> w : splitOn sep rest
  (w, []) -> [w]

data JSON = JInt !Int | JNum !Double | JStr String | JBool !Bool | JArr [JSON] | JObj [(String, JSON)]

-- | Numbers that JSON cannot represent are left out of objects.
render :: JSON -> ShowS
render value = case value of
  JInt n -> shows n
  JNum d | d == fromIntegral (round d :: Int), abs d < 9e15 -> shows (round d :: Int)
         | otherwise -> shows d
  JStr s -> quoted s
  JBool b -> showString (if b then "true" else "false")
  JArr vs -> showChar '[' . commas (map render (filter finite vs)) . showChar ']'
  JObj kvs -> showChar '{' . commas [quoted k . showChar ':' . render v | (k, v) <- kvs, finite v] . showChar '}'
  where
    commas = foldr (.) id . separate
    separate (a : rest@(_ : _)) = a : showChar ',' : separate rest
    separate as = as
    finite (JNum d) = not (isNaN d || isInfinite d)
    finite _ = True

quoted :: String -> ShowS
quoted s = showChar '"' . flip (foldr escape) s . showChar '"'
  where
    escape c rest
      | c == '"' || c == '\\' = '\\' : c : rest
      | c == '\n' = '\\' : 'n' : rest
      | c == '\t' = '\\' : 't' : rest
      | c < ' ' || c == '\DEL' = "\\u" ++ drop 1 (showHex (0x10000 + ord c) rest)
      | c >= '\xD800' && c <= '\xDFFF' = '\xFFFD' : rest
      | otherwise = c : rest
