/** Sizes of blocks that glibc keeps apart, from the smallest that a buffer takes from the heap of the process, bytes. */
const BLOCK_SIZES_BYTES = Array.from({ length: 16 }, (_, n) => 72 + 16 * n)

/** What `occupyFreedMemory` holds, until the next call. */
const held: Uint8Array[] = []

/**
 * Takes the memory that a handshake has just freed, and clears it. The first thing to do in the library's `open`.
 *
 * The library turns a request into a WebSocket by shrinking its memory in place. At the end of `cork` it takes the WebSocket for the request
 * still, since the address is the same, and reads the request's flags from behind its end. Something else may have been put there meanwhile:
 * one in some thousand clients was cut off right after the handshake. Cleared flags ask for nothing.
 * (uWebSockets.js 20.51 and 20.69: `HttpResponse::cork` compares `this` with the corked socket.)
 * It does not always get that memory: with an allocator that fills what is freed (`MALLOC_PERTURB_=16`) 1 to 4 of 10,000 handshakes are
 * still cut off, and beside other programs one of some ten thousand without it: 101, then the end, without a close frame.
 */
export function occupyFreedMemory(): void {
  // `Buffer.alloc` would not do: what is allocated cleared comes from elsewhere.
  for (const [n, bytes] of BLOCK_SIZES_BYTES.entries()) held[n] = Buffer.allocUnsafeSlow(bytes).fill(0)
}
