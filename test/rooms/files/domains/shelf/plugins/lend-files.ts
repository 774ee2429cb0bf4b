import { plugin } from '#heddle'

export default plugin(({ config, http }) => {
  http.mountStatic('/files/', config.get('SHELF_DIR', { type: 'string' }))
  http.addEndpoint('/files/special', 'GET', () => ({ success: true, data: 'beats the folder' }))
})
