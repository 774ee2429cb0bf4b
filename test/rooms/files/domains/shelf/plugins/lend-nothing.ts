import { plugin } from '#heddle'

export default plugin(({ http }) => {
  http.mountStatic('/nothing', '/no/such/folder')
})
