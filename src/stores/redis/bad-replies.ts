import { createRequire } from 'node:module'

interface DataHandler {
  dispatch(handle: () => void): void
  returnFatalError(error: Error): void
}

/**
 * What ioredis cannot make anything of, such as a null that nobody has asked for, it throws where nobody can catch it, which ends the thread. From
 * now on it ends the connection, as every other breach of the protocol does.
 */
export function endConnectionsOnBadReplies(): void {
  const { default: Handler } = createRequire(import.meta.url)('ioredis/built/DataHandler.js') as {
    default: { prototype: DataHandler }
  }
  Handler.prototype.dispatch = function dispatch(this: DataHandler, handle: () => void): void {
    try {
      handle()
    } catch (error) {
      this.returnFatalError(error as Error)
    }
  }
}
