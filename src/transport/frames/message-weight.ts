/** What holding a WebSocket message costs beside its bytes, roughly: many small messages take more memory than their bytes say. */
export const MESSAGE_OVERHEAD_BYTES = 256

/** What a message counts for until it is handled. The opening of a socket counts as a message of 0 bytes. */
export const messageWeight = (messageBytes: number): number => messageBytes + MESSAGE_OVERHEAD_BYTES
