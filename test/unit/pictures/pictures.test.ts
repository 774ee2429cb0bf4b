import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { deflateSync } from 'node:zlib'
import { drawPeers, gridOfPage, gridOfRun } from '../../pictures/charts.ts'
import { pixelsOf, withPalette } from '../../pictures/palette.ts'

const root = new URL('../../../', import.meta.url)
const PAGE = readFileSync(new URL('bench/README.md', root), 'utf8')

test('the charts of the pages show the table of figures, or what a run has written', () => {
  const sides = gridOfPage(PAGE)
  const own = sides.find(({ name }) => name === 'heddle, one lane')!
  assert.deepEqual([...own.figures.keys()], ['1', '8', '64', '512', '20,000/s', 'MB'])
  for (const theme of ['light', 'dark'] as const) {
    const drawn = readFileSync(new URL(`src/guides/pictures/peers-${theme}.svg`, root), 'utf8')
    assert.equal(
      drawn,
      drawPeers(sides, theme),
      'the chart is of another run than the table: write its table into bench/README.md, then npm run pictures',
    )
    for (const { name, figures } of sides) {
      assert.ok(drawn.includes(`>${name}</text>`))
      assert.ok(drawn.includes(`>${figures.get('64')![0]!.toLocaleString('en')}</text>`))
    }
  }

  const grid =
    '| | 1 conn: /s · µs CPU · p99 ms | 64 conn: /s · µs CPU · p99 ms | MB idle · after |\n| - | - | - | - |\n'
  const run = (details: object) => ({ cases: [{ name: 'peers', result: { details } }] })
  assert.equal(gridOfRun({ cases: [] }), null)
  const [seen] = gridOfRun(run({ grid: `${grid}| heddle, one lane | 5,000 · 100 · 1 | 9,000 · 20 · 2 | 80 · 120 |` }))!
  assert.deepEqual(seen!.figures.get('64'), [9000, 20, 2])
  assert.deepEqual(seen!.figures.get('MB'), [80, 120])
  assert.throws(
    () => drawPeers(gridOfRun(run({ grid: `${grid}| heddle | 1 · 2 · 3 | – | 4 · 5 |` }))!, 'dark'),
    /no figure/,
  )
})

test('a picture keeps its colours while they are few, and its size', () => {
  const [width, height] = [3, 2]
  const colours = [0xff0000, 0x00ff00, 0x0000ff, 0x123456, 0xff0000, 0xfefefe]
  const lines = [colours.slice(0, 3), colours.slice(3)].map((line) =>
    line.flatMap((c) => [c >> 16, (c >> 8) & 255, c & 255]),
  )
  // The filters of the format: the first line by its left neighbours, the second by the one above.
  const left = lines[0]!.map((byte, n) => (byte - (lines[0]![n - 3] ?? 0)) & 255)
  const above = lines[1]!.map((byte, n) => (byte - lines[0]![n]!) & 255)
  const png = pngOf(width, height, Buffer.from([1, ...left, 2, ...above]))
  assert.deepEqual([...pixelsOf(png).colours], colours)

  const packed = withPalette(png)
  assert.deepEqual(packed.subarray(0, 8), Buffer.from('89504e470d0a1a0a', 'hex'))
  assert.equal(packed.readUInt32BE(16), width)
  assert.equal(packed[25], 3)
  for (const theme of ['light', 'dark']) {
    const shown = readFileSync(new URL(`src/guides/pictures/requests-${theme}.png`, root))
    assert.ok(shown.length < 200 * 1024 && shown[25] === 3, theme)
  }
})

function pngOf(width: number, height: number, raw: Buffer): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, 2], 8)
  const chunk = (type: string, content: Buffer) => {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(content.length)
    return Buffer.concat([length, Buffer.from(type), content, Buffer.alloc(4)])
  }
  const parts = [chunk('IHDR', header), chunk('IDAT', deflateSync(raw)), chunk('IEND', Buffer.alloc(0))]
  return Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), ...parts])
}
