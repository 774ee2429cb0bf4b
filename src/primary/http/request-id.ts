import { randomBytes } from 'node:crypto'

/** Longest `x-request-id` of a client that is used. */
const MAX_LENGTH = 128
const VISIBLE_ASCII = /^[\x21-\x7e]+$/

/** 96 bits in base64url: unique over all replicas, and nobody who knows some foretells another. */
const RANDOM_CHARS = 16
/** Made for so many ids at once: one by one they would cost ten times as much. */
const IDS_PER_FILL = 512
let random = ''
let at = 0

export function makeRequestId(): string {
  if (at === random.length) {
    random = randomBytes((IDS_PER_FILL * RANDOM_CHARS * 3) / 4).toString('base64url')
    at = 0
  }
  const from = at
  at += RANDOM_CHARS
  return `req_${random.slice(from, at)}`
}

/** The client's own id when it is valid, else a new one. */
export function requestIdOf(header: string): string {
  if (header !== '' && header.length <= MAX_LENGTH && VISIBLE_ASCII.test(header)) return header
  return makeRequestId()
}
