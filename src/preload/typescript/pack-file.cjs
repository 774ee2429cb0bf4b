const { closeSync, fstatSync, openSync, readSync } = require('node:fs')

const TAIL_BYTES = 4

/**
 * The file of a pack, of which a part at a time is read: as a whole it takes several megabytes, and each thread would have its own. The parts come
 * first, then the index, then where the index begins.
 */
class PackFile {
  #fd
  #part = Buffer.alloc(0)

  /** @throws where there is none */
  constructor(path) {
    this.#fd = openSync(path)
  }

  /** @throws when the file is damaged */
  readIndex() {
    const end = fstatSync(this.#fd).size - TAIL_BYTES
    const begin = this.read([end, end + TAIL_BYTES]).readUInt32LE(0)
    return JSON.parse(this.read([begin, end]).utf8Slice())
  }

  /** @returns {Buffer | null} what lies there, until the next part is read; null when it is cut off */
  read([begin, end]) {
    const bytes = end - begin
    if (this.#part.length < bytes) this.#part = Buffer.allocUnsafeSlow(bytes)
    return readSync(this.#fd, this.#part, 0, bytes, begin) === bytes ? this.#part.subarray(0, bytes) : null
  }

  close() {
    closeSync(this.#fd)
    this.#part = Buffer.alloc(0)
  }
}

module.exports = { PackFile, TAIL_BYTES }
