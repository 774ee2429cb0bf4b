import type { FrameBuffer } from './frame-buffer.ts'

// Bodies that are text alone. `Outbox.sendText` and `Outbox.answerText` write them.

export const readText = ({ bytes }: FrameBuffer, at: number, length: number): string => bytes.utf8Slice(at, at + length)

/** A body that is one number: FILE_FLUSHED, SOCKET_FLUSHED, SOCKET_HANDLED, BODY_WANTED. */
export const readNumber = ({ bytes }: FrameBuffer, at: number, length: number): number =>
  Number(bytes.latin1Slice(at, at + length))

/** A number, and text behind it: SOCKET_ACCEPT (the socket, its subprotocol), SOCKET_CLOSE and SOCKET_CLOSED (code, reason). */
export const numberedText = (number: number, text: string): string => `${number} ${text}`

/** The reading side of `numberedText`. */
export function parseNumbered(text: string): [number: number, text: string] {
  const blank = text.indexOf(' ')
  return [Number(text.slice(0, blank)), text.slice(blank + 1)]
}

/** FILE_OPEN: what stands before the body of a file. */
export interface FileHead {
  status: number
  /** `name: value` lines, each ended by CR LF. */
  head: string
  lengthBytes: number
}

export const fileHeadText = ({ status, head, lengthBytes }: FileHead): string =>
  numberedText(lengthBytes, numberedText(status, head))

/** The reading side of `fileHeadText`. */
export function parseFileHead(text: string): FileHead {
  const [lengthBytes, rest] = parseNumbered(text)
  const [status, head] = parseNumbered(rest)
  return { status, head, lengthBytes }
}
