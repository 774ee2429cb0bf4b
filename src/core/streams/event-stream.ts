// What is sent as server-sent events when a handler returns it.

/** Of an async iterable: makes its frames, as text; null when there is nothing to send any more, which clients are told by 204. */
export const AS_EVENT_STREAM = Symbol('heddle.event-stream')

export interface EventStreamSource {
  readonly [AS_EVENT_STREAM]: (() => AsyncIterable<string>) | null
}
