// Finds keys that could reach a prototype in JSON that somebody else parses: handlers of mounts, of raw and streamed bodies, of sockets.

import { HeddleError } from '../../../core/errors/catalogue.ts'
import { isForbiddenKey } from './parse.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
/** Blanks, the bytes of a byte order mark, and what separates the texts of a sequence (RFC 7464). */
const BEFORE_JSON = new Set([0x20, 0x09, 0x0a, 0x0d, 0xef, 0xbb, 0xbf, 0x1e])
/** Characters of a forbidden key, each written as `\u0000`, at most. */
const KEY_MAX_BYTES = 66
/** Whatever a forbidden key is made of. */
const SUSPECTS = ['__proto__', 'constructor', 'prototype', '\\u'].map((text) => Buffer.from(text))

/**
 * Reads JSON as it comes, whatever its content type says: who parses it does not ask for that. Valid or not: what is no JSON has no keys for
 * its parser either.
 */
export class KeyScanner {
  /** Keys are in objects and lists alone. Null until something has come. */
  #mayHaveKeys: boolean | null = null
  #isInText = false
  #isEscaped = false
  /** Of the text that is read, or was read last; null where it is too long for a key to look for. */
  #text: number[] | null = []

  /** @throws HTTP_BAD_REQUEST */
  push(bytes: Uint8Array): void {
    if (this.#mayHaveKeys === null) {
      const first = bytes.find((byte) => !BEFORE_JSON.has(byte))
      if (first === undefined) return
      this.#mayHaveKeys = first === 0x7b || first === 0x5b
    }
    if (!this.#mayHaveKeys) return
    for (const byte of bytes) {
      if (this.#isInText) {
        if (!this.#isEscaped && byte === QUOTE) {
          this.#isInText = false
          continue
        }
        this.#isEscaped = !this.#isEscaped && byte === BACKSLASH
        if (this.#text !== null && this.#text.push(byte) > KEY_MAX_BYTES) this.#text = null
      } else if (byte === QUOTE) {
        this.#isInText = true
        this.#text = []
      } else if (byte === COLON) this.#check()
    }
  }

  #check(): void {
    const raw = this.#text
    if (raw === null || raw.length < 9) return
    let key = String.fromCharCode(...raw)
    if (key.includes('\\'))
      key = key.replace(/\\u([0-9a-f]{4})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    if (isForbiddenKey(key)) throw new HeddleError('HTTP_BAD_REQUEST', `The body has the forbidden key ${key}`)
  }
}

/** @throws HTTP_BAD_REQUEST for JSON with a key that could reach a prototype */
export function refuseForbiddenKeys(json: Uint8Array): void {
  const bytes = Buffer.from(json.buffer, json.byteOffset, json.byteLength)
  if (SUSPECTS.some((suspect) => bytes.includes(suspect))) new KeyScanner().push(bytes)
}

const OBJECT_OR_LIST = /^\s*[[{]/

/** The same for a message of a socket, which is text of any kind, or bytes. @returns the fault; null for none */
export function faultOfMessage(message: string | Uint8Array): string | null {
  if (typeof message === 'string' && !OBJECT_OR_LIST.test(message)) return null
  try {
    refuseForbiddenKeys(typeof message === 'string' ? Buffer.from(message) : message)
    return null
  } catch (fault) {
    return (fault as HeddleError).message.replace('The body', 'the message')
  }
}
