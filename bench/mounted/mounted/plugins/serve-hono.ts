import { plugin } from '#heddle'
import { honoApp } from '../../../baselines/hono-app.ts'

/** The same application as the baseline's, behind `http.mount`. */
export default plugin(({ http }) => {
  http.mount('/', honoApp())
})
