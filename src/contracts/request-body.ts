/** How a handler reads a body while it comes. */
export type BodyKind = 'stream' | 'multipart'

/** Bounds of what is saved to a file. */
export interface SaveOptions {
  /** Bytes at most; beyond them nothing is saved. Default: as many as the request may have. */
  maxBytes?: number
}

/** What was saved. */
export interface SavedFile {
  /** Absolute. */
  path: string
  bytes: number
}

/**
 * Bytes that are read while they come: a loop over it, `Readable.from(it)` or `ReadableStream.from(it)`. Once: it has one reader. The client
 * is read as fast as this is. Leaving the loop gives up the rest.
 *
 * Reading throws HTTP_BODY_TOO_LARGE (413) beyond `maxBytes`, HTTP_REQUEST_TIMEOUT (408) when the client sends too slowly, and
 * HTTP_BODY_BROKEN when it has left or the request was answered. What of it a handler does not catch is the answer.
 */
export interface ByteStream extends AsyncIterable<Buffer> {
  /**
   * Writes the rest to a file, under another name in the same folder until all of it is there: whoever opens the path gets the whole file or
   * the one before it. When it fails, nothing stays.
   * @param path absolute, relative to where the process was started, or a `file:` URL. Never a name that a client sends
   * @throws HTTP_BODY_TOO_LARGE beyond `maxBytes`
   */
  saveTo(path: string | URL, options?: SaveOptions): Promise<SavedFile>
  /** The rest in memory. @param maxBytes default 1 MiB @throws HTTP_BODY_TOO_LARGE beyond it */
  bytes(maxBytes?: number): Promise<Buffer>
}

/** `context.body` of a route with `body: 'stream'`: the bytes as they come, of any content type. */
export interface BodyStream extends ByteStream {
  /** Bytes that were read so far. */
  readonly bytesRead: number
}

/** One part of a multipart form. What is not read of it is skipped when the next one is asked for. */
export interface BodyPart extends ByteStream {
  /** Name of the form's field; several parts may have the same. */
  readonly field: string
  /**
   * The name that the client gave, without folders and control characters; it may be empty, and is never a path to write to. Null for a part
   * that is no file.
   */
  readonly filename: string | null
  /** The content type that the client gave, which proves nothing. */
  readonly type: string
  /** The rest as UTF-8. @param maxBytes default 1 MiB @throws HTTP_BODY_TOO_LARGE beyond it */
  text(maxBytes?: number): Promise<string>
}

/** `context.body` of a route with `body: 'multipart'`: the parts of the form in their order. */
export interface BodyParts extends AsyncIterable<BodyPart> {}

/** The type of `context.body`, derived from the options of a route. */
export type RequestBody<Options> = Options extends { body: 'stream' }
  ? BodyStream
  : Options extends { body: 'multipart' }
    ? BodyParts
    : unknown
