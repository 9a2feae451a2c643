"""dibs/files/probing"""
