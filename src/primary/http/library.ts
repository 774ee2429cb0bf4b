/**
 * What the listener asks of an HTTP library: uWebSockets.js, whose own objects fit these shapes, or node:http behind an adapter that
 * speaks like it. The differences that clients can see are in README.md beside this file.
 */
export interface HttpLibrary {
  readonly name: 'uWebSockets.js' | 'node:http'
  /**
   * True when the end of each request is certain, because whatever is not HTTP by the letter is refused before the listener sees it, and
   * requests of one connection are taken one after another.
   */
  readonly isStrict: boolean
  createApp(): HttpApp
  /**
   * Answers a request whose end is not certain, and sees to it that nothing that came behind it is read. The connection is closed.
   * @param head `name: value` lines, each ended by CR LF. @param body null: the connection is closed without an answer
   */
  refuse(res: ClientResponse, status: number, head: string, body: string | null): void
}

/** One address that is listened on, with its connections. */
export interface HttpApp {
  serve(handlers: RequestHandlers): void
  /** From now on handshakes come as such. */
  serveSockets(handlers: SocketHandlers): void
  /**
   * Takes connections. Resolves with the port; 0 when it cannot be listened on.
   * @param port 0: any free one. @param isShared other processes may listen on it, too
   */
  listen(host: string, port: number, isShared: boolean): Promise<number>
  /** Takes no new connections. */
  shut(): void
  /** Ends all connections. Called once, after `shut`. */
  close(): void
}

export interface RequestHandlers {
  /** The request is to be read before this returns. It may not throw. */
  readonly onRequest: (res: ClientResponse, req: ClientRequest) => void
  /** Told 1 when a connection opens, and -1 when one is gone that has not become a WebSocket. False: it is to be closed. */
  readonly onConnection: (change: number, peer?: () => string) => boolean
  /** Told of a request that the library has refused because its end is not certain. */
  readonly onFramingFault: (fault: string, ip: string) => void
}

export interface SocketHandlers {
  /** A message beyond it is closed with 1009. */
  readonly limitBytes: number
  readonly onHandshake: (res: ClientResponse, req: ClientRequest, context: HandshakeContext) => void
  /** Told when a connection is gone that a handshake has made a WebSocket. */
  readonly onGone: () => void
  readonly onFault: (error: unknown) => void
}

export interface HandshakeContext {
  /** What the library wants back when the connection becomes a WebSocket. */
  readonly own: object
  /** As `cork` of the response, for what ends with its `upgrade`. */
  readonly cork: (write: () => void) => void
}

/** The head of a request. Valid until `onRequest` returns. */
export interface ClientRequest {
  getCaseSensitiveMethod(): string
  /** The path as it was sent. */
  getUrl(): string
  getQuery(): string | undefined
  /** The first one of that name; empty when there is none. @param name in lower case */
  getHeader(name: string): string
  /** All headers in their order, names in lower case. */
  forEach(each: (name: string, value: string) => void): void
}

/** Where the answer is written. Nothing may be called after its end, or after `onAborted` was told. */
export interface ClientResponse {
  onAborted(callback: () => void): unknown
  /** Told of the pieces of the body. The memory is gone when the callback returns. */
  onData(callback: (chunk: ArrayBuffer, isLast: boolean) => void): unknown
  /** Reads nothing more of the connection, until `resume`: what was read already still comes. May be called again. */
  pause(): unknown
  resume(): unknown
  /** Told when more can be written, with the offset of the next byte of the body. */
  onWritable(callback: (offset: number) => boolean): unknown
  cork(write: () => void): unknown
  /** @param line `404 Not Found` */
  writeStatus(line: string): this
  /** @param value may hold further `name: value` lines, each behind a CR LF */
  writeHeader(name: string, value: string): this
  /** A piece of a chunked body, lent for the call. False when the client does not keep up: it was taken all the same. */
  write(chunk: Uint8Array<ArrayBuffer>): boolean
  /** A piece of a body of known length. What is behind `getWriteOffset` afterwards was not taken. */
  tryEnd(piece: Uint8Array<ArrayBuffer>, totalBytes: number): [isAccepted: boolean, isComplete: boolean]
  getWriteOffset(): number
  /** @param body lent for the call. @param close the connection, too */
  end(body?: string | Uint8Array, close?: boolean): unknown
  endWithoutBody(): unknown
  /** Ends the connection at once. */
  close(): unknown
  /** Address of the client in 4 or 16 bytes: a system call. Not on node:http, which has `remoteAddress`. */
  getRemoteAddress?(): ArrayBuffer
  readonly remoteAddress?: string
  /** Answers with 101. The socket is told `opened` before this returns. @param context that of the handshake, its `own` */
  upgrade(userData: SocketUserData, key: string, protocol: string, extensions: string, context: object): void
}

/** Told of what happens at a WebSocket. */
export interface SocketListener {
  opened(ws: LibrarySocket): void
  received(message: Uint8Array, isBinary: boolean): void
  /** What waited for the client has left. */
  drained(): void
  /** The last that it is told. */
  closed(code: number, reason: string): void
}

/** The user data that the library keeps with a WebSocket. */
export interface SocketUserData {
  readonly socket: SocketListener
}

/** The library's end of a WebSocket. It must not be used after the `ClientSocket` was told `closed`. */
export interface LibrarySocket {
  /** Lent for the call. 1 when it has left, 0 when it waits, 2 when it was dropped. */
  send(message: Uint8Array<ArrayBuffer>, isBinary: boolean): number
  /** Bytes that wait for the client. */
  getBufferedAmount(): number
  /** Sends a close frame, drops what waits and ends the connection. */
  end(code: number, reason: string): void
  /** Ends the connection at once. */
  close(): void
}
