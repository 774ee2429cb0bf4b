/** Memory that a WebSocket message takes beside its bytes, roughly: it counts where there are many small ones. */
export const MESSAGE_OVERHEAD_BYTES = 256

/** The weight of a message until it is handled. The opening of a socket counts as a message of 0 bytes. */
export const messageWeight = (messageBytes: number): number => messageBytes + MESSAGE_OVERHEAD_BYTES
