import { createCanvas } from '@napi-rs/canvas'

export default () => async () => {
  const canvas = createCanvas(200, 100)
  canvas.getContext('2d').fillRect(10, 10, 50, 50)
  return (await canvas.encode('png')).length
}
