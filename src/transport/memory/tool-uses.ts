import { SharedWords } from './words.ts'

// Taken before plugins can replace them.
const { load, or } = Atomics

/**
 * Which plugin has called which tool: a Bloom filter (any thread adds, any thread reads, none removes). Each pair sets two bits.
 * A pair that was added is always found. With 1500 pairs in it, about 3 in 100,000 pairs that were not added are found as well.
 */
const USES_BITS = 1 << 19

/** Where tools find it among the shared memories: it belongs to the registry. */
export const USES_MEMORY = 'tool-uses'
export const USES_BYTES = USES_BITS >> 3

/** The process's tool uses since its boot, whichever lanes have come and gone. */
export class ToolUses extends SharedWords {
  add(plugin: string, tool: string): void {
    // Read by `has` alone: each bit stands for itself and publishes nothing else.
    for (const bit of bitsOf(plugin, tool)) or(this.words, bit >> 5, 1 << (bit & 31))
  }

  has(plugin: string, tool: string): boolean {
    return bitsOf(plugin, tool).every((bit) => (load(this.words, bit >> 5) & (1 << (bit & 31))) !== 0)
  }
}

function bitsOf(plugin: string, tool: string): [number, number] {
  const pair = `${plugin} ${tool}`
  return [fnv1a(pair, 0x811c9dc5) & (USES_BITS - 1), fnv1a(pair, 0x5bd1e995) & (USES_BITS - 1)]
}

/** FNV-1a, 32 bits, over code units, mixed once more at its end (MurmurHash3's finalizer) for the low bits. */
function fnv1a(text: string, seed: number): number {
  let hash = seed
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}
