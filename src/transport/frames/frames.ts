// The kinds of frames, the memory of a frame, and bodies that are a number, a text or a list of ids.
import type { FrameMemory } from '../memory/spsc-ring.ts'

/**
 * The kinds of frames in the two rings of a lane. Everything that is rare goes through the port as a structured message (messages.ts).
 * Both rings use one set: the ring says which way a frame goes, and the kind what it is.
 * One object instead of thirty constants: a lane that tsx loads reads imports through getters, which are slow in a module with many exports.
 */
export const KIND = {
  // primary → lane
  REQUEST: 1,
  CANCEL: 2,
  DELIVERY: 3,
  CALL_RESULT: 4,
  CALL_ERROR: 5,
  PUBLISH_ACCEPTED: 6,
  PUBLISH_REFUSED: 7,
  /** Bytes of the body of a request, as many as BODY_WANTED has asked for. */
  REQUEST_DATA: 8,
  /** The body of a request ends. Empty when it is complete; else the code of the error that has ended it. */
  REQUEST_END: 9,
  /** Bytes of the body of an answer have left for the client. */
  BODY_FLUSHED: 10,
  // The id of a socket's frame is the socket's number in the lane.
  /** Messages of the client. */
  SOCKET_IN_TEXT: 11,
  SOCKET_IN_BYTES: 12,
  /** Bytes of a socket have left for the client. */
  SOCKET_FLUSHED: 13,
  // both ways
  SOCKET_CLOSE: 14,
  // lane → primary
  RESPONSE: 16,
  /** The head of an answer whose body follows. */
  RESPONSE_HEAD: 17,
  /** Bytes of the body of an answer, as fast as BODY_FLUSHED allows. */
  RESPONSE_DATA: 18,
  /** The body of an answer ends. Empty when it is complete. */
  RESPONSE_END: 19,
  CALL: 20,
  PUBLISH: 21,
  DELIVERED: 22,
  DELIVERY_REPLY: 23,
  DELIVERY_FAILED: 24,
  LOG: 25,
  /** The handshake of a request is accepted: it becomes a socket. */
  SOCKET_ACCEPT: 26,
  /** An event that a broker has taken, without its payload, for the trace. */
  RECORD: 27,
  /** Messages for the client. */
  SOCKET_OUT_TEXT: 28,
  SOCKET_OUT_BYTES: 29,
  /** Messages of a socket are handled, by weight. */
  SOCKET_HANDLED: 32,
  /** An event that is in the event store, without its payload. It is not answered. */
  STORED: 34,
  /** A handler can take this many further bytes of the body of its request. */
  BODY_WANTED: 35,
  /** The handler of a request that was given up has settled, and no answer tells so. */
  SETTLED: 36,
} as const

export type Kind = (typeof KIND)[keyof typeof KIND]

/** How the frames of a kind are sent. */
interface Priority {
  /**
   * What happens while the ring is full. `refuse`: the sender keeps the frame. `wait`: it waits in the backlog, and is refused when that is
   * full too. `keep`: it waits in any case, because the other side waits for it, and the number of those is limited there.
   */
  readonly whenFull: 'refuse' | 'wait' | 'keep'
  /** Nothing waits for it: the other side need not be woken at once. */
  readonly isLazy: boolean
}

const REFUSED = { whenFull: 'refuse', isLazy: false } as const
const WAITS = { whenFull: 'wait', isLazy: false } as const
const KEPT = { whenFull: 'keep', isLazy: false } as const

/** The priority of each kind. */
export const PRIORITY = {
  // Another lane may have room, or the sender has a queue of its own.
  [KIND.REQUEST]: REFUSED,
  [KIND.DELIVERY]: REFUSED,
  [KIND.SOCKET_IN_TEXT]: REFUSED,
  [KIND.SOCKET_IN_BYTES]: REFUSED,
  // Plugins make as many as they like. Whoever is refused gets an error, or slows down.
  [KIND.CALL]: WAITS,
  [KIND.PUBLISH]: WAITS,
  [KIND.LOG]: WAITS,
  [KIND.RECORD]: { whenFull: 'wait', isLazy: true },
  [KIND.RESPONSE_DATA]: WAITS,
  [KIND.SOCKET_OUT_TEXT]: WAITS,
  [KIND.SOCKET_OUT_BYTES]: WAITS,
  // Answers, and what belongs to a request or socket that the other side knows.
  [KIND.CANCEL]: KEPT,
  [KIND.CALL_RESULT]: KEPT,
  [KIND.CALL_ERROR]: KEPT,
  [KIND.PUBLISH_ACCEPTED]: KEPT,
  [KIND.PUBLISH_REFUSED]: KEPT,
  [KIND.REQUEST_DATA]: KEPT,
  [KIND.REQUEST_END]: KEPT,
  [KIND.BODY_FLUSHED]: KEPT,
  [KIND.SOCKET_FLUSHED]: KEPT,
  [KIND.SOCKET_CLOSE]: KEPT,
  [KIND.RESPONSE]: KEPT,
  [KIND.RESPONSE_HEAD]: KEPT,
  [KIND.RESPONSE_END]: KEPT,
  [KIND.DELIVERED]: KEPT,
  [KIND.DELIVERY_REPLY]: KEPT,
  [KIND.DELIVERY_FAILED]: KEPT,
  [KIND.SOCKET_ACCEPT]: KEPT,
  // The primary needs it only for its budget of unhandled messages.
  [KIND.SOCKET_HANDLED]: { whenFull: 'keep', isLazy: true },
  // It is committed: only its frame tells the primary so.
  [KIND.STORED]: KEPT,
  [KIND.BODY_WANTED]: KEPT,
  [KIND.SETTLED]: KEPT,
} as const satisfies Record<Kind, Priority>

/** Kinds that are never refused. */
export type KeptKind = { [K in Kind]: (typeof PRIORITY)[K]['whenFull'] extends 'keep' ? K : never }[Kind]

/** Larger bodies go by `postMessage` with a transfer list. The ring carries only their header. */
export const INLINE_MAX_BYTES = 65_536
/** Set in the kind of a frame whose body comes by the bulk port. */
export const BULK_FLAG = 1 << 8
export const KIND_MASK = BULK_FLAG - 1

/** The memory that a frame's body is written to and read from: the ring itself, or a buffer of its own. */
export type FrameBuffer = Pick<FrameMemory, 'bytes' | 'words'>

export const utf8MaxBytes = (text: string): number => text.length * 3

// Bodies that are text alone. `Outbox.sendText` writes them.

export const readText = ({ bytes }: FrameBuffer, at: number, length: number): string => bytes.utf8Slice(at, at + length)

/** A body that is one number: BODY_FLUSHED, SOCKET_FLUSHED, SOCKET_HANDLED, BODY_WANTED. */
export const readNumber = ({ bytes }: FrameBuffer, at: number, length: number): number =>
  Number(bytes.latin1Slice(at, at + length))

/** A number, and text behind it: SOCKET_ACCEPT (the socket, its subprotocol), SOCKET_CLOSE (code, reason). */
export const numberedText = (number: number, text: string): string => `${number} ${text}`

/** The reading side of `numberedText`. */
export function parseNumbered(text: string): [number: number, text: string] {
  const blank = text.indexOf(' ')
  return [Number(text.slice(0, blank)), text.slice(blank + 1)]
}

// DELIVERED: the ids of deliveries that were handled, one word each.

export const acknowledgementBytes = (count: number): number => count * Int32Array.BYTES_PER_ELEMENT

/** Writes `count` ids, the first of them `ids[from]`. */
export function writeAcknowledgements(
  { words }: FrameBuffer,
  at: number,
  ids: readonly number[],
  from: number,
  count: number,
): void {
  const word = at >> 2
  for (let n = 0; n < count; n++) words[word + n] = ids[from + n]!
}

/** Calls `visit` with each id of the frame. */
export function readAcknowledgements(
  { words }: FrameBuffer,
  at: number,
  length: number,
  visit: (deliveryId: number) => void,
): void {
  const word = at >> 2
  const count = length / Int32Array.BYTES_PER_ELEMENT
  for (let n = 0; n < count; n++) visit(words[word + n]!)
}

/** Memory that a WebSocket message takes beside its bytes, roughly: it counts where there are many small ones. */
export const MESSAGE_OVERHEAD_BYTES = 256

/** The weight of a message until it is handled. The opening of a socket counts as a message of 0 bytes. */
export const messageWeight = (messageBytes: number): number => messageBytes + MESSAGE_OVERHEAD_BYTES
