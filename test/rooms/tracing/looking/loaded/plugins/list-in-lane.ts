import { plugin } from '#heddle'
import { listens, loaded } from '../packages.ts'

export default plugin(({ http }) => {
  const atBoot = listens()
  http.addEndpoint('/loaded/lane', 'GET', () => ({ success: true, data: { loaded: loaded(), listens: atBoot } }))
})
