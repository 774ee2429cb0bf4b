import { randomBytes } from 'node:crypto'

/** Longest `x-request-id` of a client that is used. */
const MAX_LENGTH = 128
const VISIBLE_ASCII = /^[\x21-\x7e]+$/

const prefix = `req_${randomBytes(9).toString('base64url')}_`
let count = 0

/** Unique over all replicas by its random prefix, and within the process by a counter. */
export function makeRequestId(): string {
  return prefix + (++count).toString(36)
}

/** The client's own id when it is valid, else a new one. */
export function requestIdOf(header: string): string {
  if (header !== '' && header.length <= MAX_LENGTH && VISIBLE_ASCII.test(header)) return header
  return makeRequestId()
}
