/** What a subscriber gets that names no other value; the contract of `event_bus` says what each is. */
export const SUBSCRIBER_DEFAULTS = { retries: 0, backoffMs: 500, timeoutMs: 30_000, broadcast: false } as const
