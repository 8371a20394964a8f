SubprocessWorker = None
