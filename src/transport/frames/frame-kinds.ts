/**
 * The kinds of frames in the two rings of a lane. Everything that is rare goes through the port as a structured message (messages.ts).
 * One object instead of twenty constants: a lane that tsx loads reads imports through getters, which are slow in a module with many exports.
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
  // The id of a socket's frame is the socket's number in the lane.
  SOCKET_TEXT: 8,
  SOCKET_BYTES: 9,
  SOCKET_CLOSED: 10,
  /** Bytes of a socket have left for the client. */
  SOCKET_FLUSHED: 11,
  /** Bytes of a request's file have left for the client. */
  FILE_FLUSHED: 12,
  /** Bytes of the body of a request, as many as BODY_WANTED has asked for. */
  BODY_PIECE: 13,
  /** The body is complete. Else the text is the code of the error that has ended it. */
  BODY_END: 14,
  // lane → primary
  RESPONSE: 16,
  STREAM_OPEN: 17,
  STREAM_DATA: 18,
  /** Empty, or any text for a body that is not complete. */
  STREAM_END: 19,
  CALL: 20,
  PUBLISH: 21,
  DELIVERED: 22,
  DELIVERY_REPLY: 23,
  DELIVERY_FAILED: 24,
  LOG: 25,
  ADDRESS_WANTED: 26,
  /** An event that streams carry, without its payload, for the trace. The id is 1 when it was received, 0 when it was published. */
  RECORD: 27,
  /** The handshake of a request is accepted: it becomes a socket. */
  SOCKET_ACCEPT: 28,
  SOCKET_SEND_TEXT: 29,
  SOCKET_SEND_BYTES: 30,
  SOCKET_CLOSE: 31,
  /** Messages of a socket are handled, by weight. */
  SOCKET_HANDLED: 32,
  /** The head of an answer whose body follows as STREAM_DATA, as fast as FILE_FLUSHED allows. */
  FILE_OPEN: 33,
  /** An event that is in the durable log. It is not answered. */
  STORED: 34,
  /** A handler can take this many further bytes of the body of its request. */
  BODY_WANTED: 35,
  /** The handler of a request that was given up has settled, and no answer tells so. */
  SETTLED: 36,
} as const

/** Larger bodies go by `postMessage` with a transfer list. The ring carries only their header. */
export const INLINE_MAX_BYTES = 65_536
/** Set in the kind of a frame whose body comes by the bulk port. */
export const BULK_FLAG = 1 << 8
export const KIND_MASK = BULK_FLAG - 1
