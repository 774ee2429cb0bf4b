/** The default options of a subscriber. `SubscribeOptions` of the contract `event_bus` describes them. */
export const SUBSCRIBER_DEFAULTS = { retries: 0, backoffMs: 500, timeoutMs: 30_000, broadcast: false } as const
