/**
 * The frames of the two rings of a lane: what kinds there are.
 * Everything rare goes through the port as a structured message (messages.ts).
 * One object, not twenty constants: a lane on Node 20 reads imports through getters, and those of a crowded module are slow.
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
  // Sockets go by their number in the lane.
  SOCKET_TEXT: 8,
  SOCKET_BYTES: 9,
  SOCKET_CLOSED: 10,
  /** So many bytes have left for the client. */
  SOCKET_FLUSHED: 11,
  /** So many bytes of a request's file have left for the client. */
  FILE_FLUSHED: 12,
  // lane → primary
  RESPONSE: 16,
  STREAM_OPEN: 17,
  STREAM_DATA: 18,
  STREAM_END: 19,
  CALL: 20,
  PUBLISH: 21,
  DELIVERED: 22,
  DELIVERY_REPLY: 23,
  DELIVERY_FAILED: 24,
  LOG: 25,
  ADDRESS_WANTED: 26,
  /** An event that another broker delivers, without its payload: for the trace. Its id is 1 when it was received, 0 when published. */
  RECORD: 27,
  /** The handshake of a request is done: it is a socket now. */
  SOCKET_ACCEPT: 28,
  SOCKET_SEND_TEXT: 29,
  SOCKET_SEND_BYTES: 30,
  SOCKET_CLOSE: 31,
  /** So much of what came is handled. */
  SOCKET_HANDLED: 32,
  /** The head of an answer whose body comes as STREAM_DATA, at the pace that FILE_FLUSHED says. */
  FILE_OPEN: 33,
} as const

/** Bodies above this go by `postMessage` with a transfer list; the ring carries only their header. */
export const INLINE_MAX_BYTES = 65_536
/** Set in KIND when the body comes by the bulk port. */
export const BULK_FLAG = 1 << 8
export const KIND_MASK = BULK_FLAG - 1
