// A PNG with at most 256 colours is half as large as the screenshot that it was: pages have few, and shades where text meets its ground.
import { crc32, deflateSync, inflateSync } from 'node:zlib'

const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex')
const COLOURS = 256
const BITS = 8
/** Colour types of the format: their bytes for a pixel. */
const BYTES_OF: Readonly<Record<number, number>> = { 2: 3, 6: 4 }
const BY_PALETTE = 3

interface Pixels {
  width: number
  height: number
  /** Red, green and blue of each pixel in one number. */
  colours: Uint32Array
}

/** @param png what a browser makes of a page: 8 bits a channel, not interlaced, nothing transparent */
export function withPalette(png: Buffer): Buffer {
  const { width, height, colours } = pixelsOf(png)
  const counts = new Map<number, number>()
  for (const colour of colours) counts.set(colour, (counts.get(colour) ?? 0) + 1)
  const palette = [...counts]
    .sort(([, a], [, b]) => b - a)
    .slice(0, COLOURS)
    .map(([colour]) => colour)
  const indexOf = new Map([...counts.keys()].map((colour) => [colour, nearest(palette, colour)]))

  const lines = Buffer.alloc(height * (width + 1))
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) lines[y * (width + 1) + x + 1] = indexOf.get(colours[y * width + x]!)!
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([BITS, BY_PALETTE], 8)
  const table = Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]))
  const data = deflateSync(lines, { level: 9 })
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    chunk('PLTE', table),
    chunk('IDAT', data),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function nearest(palette: readonly number[], colour: number): number {
  let best = 0
  let least = Number.POSITIVE_INFINITY
  for (const [n, other] of palette.entries()) {
    const distance = [16, 8, 0].reduce(
      (sum, shift) => sum + (((colour >> shift) & 255) - ((other >> shift) & 255)) ** 2,
      0,
    )
    if (distance < least) [best, least] = [n, distance]
  }
  return best
}

/** @throws for what no browser writes */
export function pixelsOf(png: Buffer): Pixels {
  const data: Buffer[] = []
  let header: Buffer = Buffer.alloc(13)
  for (let at = SIGNATURE.length; at < png.length; ) {
    const length = png.readUInt32BE(at)
    const content = png.subarray(at + 8, at + 8 + length)
    const type = png.toString('latin1', at + 4, at + 8)
    if (type === 'IHDR') header = content
    if (type === 'IDAT') data.push(content)
    at += length + 12
  }
  const [width, height, bytes] = [header.readUInt32BE(0), header.readUInt32BE(4), BYTES_OF[header[9]!]]
  if (header[8] !== BITS || bytes === undefined || header[12] !== 0) throw new Error('This PNG is of another kind')
  const line = width * bytes
  const raw = inflateSync(Buffer.concat(data))
  const colours = new Uint32Array(width * height)
  let above = new Uint8Array(line)
  for (let y = 0; y < height; y++) {
    const from = y * (line + 1)
    above = unfiltered(raw[from]!, raw.subarray(from + 1, from + 1 + line), above, bytes)
    for (let x = 0; x < width; x++) {
      const at = x * bytes
      colours[y * width + x] = (above[at]! << 16) | (above[at + 1]! << 8) | above[at + 2]!
    }
  }
  return { width, height, colours }
}

/** A line as it was before the filter of the format (https://www.w3.org/TR/png-3/#9Filters). */
function unfiltered(filter: number, line: Uint8Array, above: Uint8Array, bytes: number): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(line.length)
  for (let n = 0; n < line.length; n++) {
    const [left, up, corner] = [out[n - bytes] ?? 0, above[n]!, above[n - bytes] ?? 0]
    const guess = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter]!
    out[n] = line[n]! + guess
  }
  return out
}

function paeth(left: number, up: number, corner: number): number {
  const guess = left + up - corner
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)]
  if (a <= b && a <= c) return left
  return b <= c ? up : corner
}

function chunk(type: string, content: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), content])
  const frame = Buffer.alloc(8)
  frame.writeUInt32BE(content.length, 0)
  frame.writeUInt32BE(crc32(named), 4)
  return Buffer.concat([frame.subarray(0, 4), named, frame.subarray(4)])
}
