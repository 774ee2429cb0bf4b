/** An event's payload: a JSON object of at most 1 MiB. */
export type Payload = Record<string, unknown>
