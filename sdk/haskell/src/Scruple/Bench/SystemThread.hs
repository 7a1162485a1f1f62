{-# LANGUAGE CPP #-}

-- | The threads of the system that run Haskell's threads: the runtime may continue one of ours on another one.
module Scruple.Bench.SystemThread (numbered, waiting) where

#ifdef linux_HOST_OS
import Control.Monad (void, when)
import Foreign.C.String (CString, peekCAStringLen, withCString)
import Foreign.C.Types (CSize (..), CULong (..))
import Foreign.Marshal.Alloc (allocaBytes)
import Foreign.Ptr (castPtr)
import System.Posix.Internals (c_close, c_open, c_read)
import System.Posix.Types (CSsize (..))
#endif

-- | Runs an action, and tells the kernel's number of the thread of the system that ran all of it; 'Nothing' if several
-- did, or if the kernel does not tell.
numbered :: IO a -> IO (a, Maybe Int)

-- | Runs an action, and tells how many ns the thread of the system was ready but waited for a core meanwhile; 'Nothing' if
-- the kernel does not tell, or if another thread of the system has continued the action.
waiting :: IO a -> IO (a, Maybe Int)
#ifdef linux_HOST_OS
numbered act = do
  first <- c_pthread_self
  result <- act
  number <- ownNumber
  same <- (== first) <$> c_pthread_self
  return (result, if same then number else Nothing)

-- | The kernel's number of this thread of the system, which is the last part of a link.
ownNumber :: IO (Maybe Int)
ownNumber = withCString "/proc/thread-self" $ \path -> allocaBytes 64 $ \text -> do
  size <- c_readlink path text 64
  told <- peekCAStringLen (text, max 0 (fromIntegral size))
  return $ case reads (reverse (takeWhile (/= '/') (reverse told))) of
    [(number, "")] -> Just number
    _ -> Nothing

foreign import ccall unsafe "readlink" c_readlink :: CString -> CString -> CSize -> IO CSsize

waiting act = do
  before <- waitedSoFar
  result <- act
  after <- waitedSoFar
  return (result, case (before, after) of
    (Just (thread, then_), Just (same, now)) | thread == same && now >= then_ -> Just (now - then_)
    _ -> Nothing)

-- | This thread of the system, and how long it was ready but waited for a core so far, in ns.
waitedSoFar :: IO (Maybe (CULong, Int))
waitedSoFar = withCString "/proc/thread-self/schedstat" $ \path -> allocaBytes 64 $ \text -> do
  file <- c_open path 0 0
  size <- if file < 0 then return 0 else c_read file (castPtr text) 64
  when (file >= 0) (void (c_close file))
  thread <- c_pthread_self
  told <- peekCAStringLen (text, max 0 (fromIntegral size))
  return $ case map reads (words told) of
    [_, [(waited, "")], _] -> Just (thread, waited)
    _ -> Nothing

foreign import ccall unsafe "pthread_self" c_pthread_self :: IO CULong
#else
numbered act = (\result -> (result, Nothing)) <$> act

waiting act = (\result -> (result, Nothing)) <$> act
#endif
