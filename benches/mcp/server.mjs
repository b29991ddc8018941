// The tool echo of tools.d, written with the official SDK as its documentation shows.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { z } from 'zod';

const server = new McpServer({ name: 'echo', version: '1.0.0' });
server.registerTool(
  'echo',
  { title: 'Echo', description: 'Echo one value', inputSchema: { value: z.string() } },
  async ({ value }) => ({ content: [{ type: 'text', text: value }] }),
);
await server.connect(new StdioServerTransport());
