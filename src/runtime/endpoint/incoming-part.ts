import type { Readable } from 'node:stream'
import type { BodyPart, SavedFile, SaveOptions } from '../../contracts/request-body.ts'
import { gathered } from './gathered-bytes.ts'
import { saveToFile } from './saved-file.ts'

/** One part of a form that is read while it comes. */
export class IncomingPart implements BodyPart {
  readonly field: string
  readonly filename: string | null
  readonly type: string
  readonly #source: Readable
  #fault: Error | null = null

  constructor(field: string, filename: string | null, type: string, source: Readable) {
    this.field = field
    this.filename = filename
    this.type = type
    this.#source = source
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void, undefined> {
    try {
      // Destroyed when its reader leaves the loop, it would stop the parts behind it.
      for await (const chunk of this.#source.iterator({ destroyOnReturn: false })) yield chunk as Buffer
    } catch (error) {
      // The parser has words of its own.
      throw this.#fault ?? error
    }
  }

  saveTo(path: string | URL, options?: SaveOptions): Promise<SavedFile> {
    return saveToFile(this, path, options)
  }

  bytes(maxBytes?: number): Promise<Buffer> {
    return gathered(this, maxBytes)
  }

  async text(maxBytes?: number): Promise<string> {
    return (await gathered(this, maxBytes)).toString()
  }

  // ── for the runtime ───────────────────────────────────────────────────────

  /** Nobody wants the rest. */
  skip(): void {
    this.#source.resume()
  }

  /** Its end does not come. */
  fail(error: Error): void {
    this.#fault ??= error
    this.#source.destroy(error)
  }

  /** True for a part without a byte. Waits for its first. */
  async isEmpty(): Promise<boolean> {
    const source = this.#source
    if (source.readableLength > 0) return false
    if (!source.readableEnded && !source.destroyed) {
      await new Promise<void>((resolve) => {
        const done = (): void => {
          for (const event of ['readable', 'end', 'error', 'close']) source.off(event, done)
          resolve()
        }
        for (const event of ['readable', 'end', 'error', 'close']) source.on(event, done)
      })
    }
    return source.readableLength === 0 && source.errored === null
  }
}
