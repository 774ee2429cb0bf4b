import { plugin } from '#heddle'
import { spin } from '../spin.ts'

/** Pure computation in a handler, which is what lanes are for. The path says how much; the benchmark calibrates it. */
export default plugin(({ http }) => {
  http.get('/bench/cpu/:iterations', ({ iterations }) => ({
    success: true,
    data: { checksum: spin(Number(iterations)) },
  }))
})
