// Preloaded into a process of the runtime: answers each message of its parent with the memory of its main thread.
const { isMainThread } = require('node:worker_threads')

if (isMainThread) process.on('message', () => process.send({ memory: process.memoryUsage() }))
