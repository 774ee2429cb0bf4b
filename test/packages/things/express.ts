import type { AddressInfo } from 'node:net'
import express from 'express'

export default () => {
  const app = express()
  app.get('/looms/:id', (request, response) => {
    response.json({ id: request.params.id })
  })
  const server = app.listen(0, '127.0.0.1')
  const listening = new Promise((resolve) => server.once('listening', resolve))
  return async () => {
    await listening
    return (await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/looms/1`)).json()
  }
}
